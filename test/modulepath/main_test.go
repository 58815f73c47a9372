package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// tree are files before and after a change of the path from `old`, a name that the change of a real path leaves as it is.
// .ci/run builds a copy of the repository with another path.
var tree = map[string][2]string{
	"go.mod": {
		"module old\n\nreplace old/client => ./client\n\nrequire old/client v0.0.0\n",
		"module example.org/a/b\n\nreplace example.org/a/b/client => ./client\n\nrequire example.org/a/b/client v0.0.0\n",
	},
	"test/readers/go.mod": {
		"module old/test/readers\n\nreplace old => ../..\n\ntool old/cmd/old\n",
		"module example.org/a/b/test/readers\n\nreplace example.org/a/b => ../..\n\ntool example.org/a/b/cmd/old\n",
	},
	".golangci.yml": {
		"- { pkg: old, desc: a } # old\n- [old, old/*, \"**/cmd/old/**\", prefix(old)]\n",
		"- { pkg: example.org/a/b, desc: a } # old\n" +
			"- [example.org/a/b, example.org/a/b/*, \"**/cmd/old/**\", prefix(example.org/a/b)]\n",
	},
	"client/a.go": {
		"import (\n\t\"old\"\n\tx \"old/client/export\"\n)\n\n// old/clients of /etc/old/client\n" +
			"const a, b, c = \"old/cmd/old\", \"old/ops\", \"old\"\n",
		"import (\n\t\"example.org/a/b\"\n\tx \"example.org/a/b/client/export\"\n)\n\n// old/clients of /etc/old/client\n" +
			"const a, b, c = \"example.org/a/b/cmd/old\", \"old/ops\", \"old\"\n",
	},
	"cmd/old/main.go": {"package main\n", "package main\n"},
	"docs/a.md": {
		"old: `-replace old/client=../old/client`, old/clients\n",
		"old: `-replace example.org/a/b/client=../old/client`, old/clients\n",
	},
	"docs/a.yml":           {"old/client", "old/client"},
	"client/testdata/a.go": {"old/client", "old/client"},
}

func TestRun(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for name, texts := range tree {
		path := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(texts[0]), 0o600))
	}
	for _, path := range []string{"", "old", "https://example.org/a", "example.org"} {
		var stderr strings.Builder
		require.Equal(t, 1, run(root, []string{path}, &stderr))
		require.Contains(t, stderr.String(), "name the new path")
	}
	// The path can change again.
	for _, path := range []string{"github.com/acme/old", "example.org/a/b"} {
		require.Zero(t, run(root, []string{path}, os.Stderr))
	}
	for name, texts := range tree {
		text, err := os.ReadFile(filepath.Join(root, name))
		require.NoError(t, err)
		require.Equal(t, texts[1], string(text), name)
	}
	require.Equal(t, 1, run(t.TempDir(), []string{"example.org/a"}, &strings.Builder{}), "no module")
}
