package client_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// root is the root of the repository.
const root = "../.."

// run runs a command in a directory and returns what it prints. It needs no network: the cache has the modules, because
// this module requires the same versions.
func run(t *testing.T, dir string, env []string, argv ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	command.Dir = dir
	command.Env = append(os.Environ(), append(env, "CGO_ENABLED=0", "GOPROXY=off", "GOSUMDB=off")...)
	out, err := command.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return string(out)
}

// TestExamples runs the examples of the client in its own module.
func TestExamples(t *testing.T) {
	t.Parallel()
	s := startFixture(t)
	out := run(t, filepath.Join(root, "client"),
		[]string{"ROOMSENSOR_EXAMPLES_URL=" + s.URL, "ROOMSENSOR_EXAMPLES_KEY=" + s.Key},
		"go", "test", "-count=1", "-v", "-vet=off", ".")
	require.Contains(t, out, "--- PASS: ExampleHasCode")
}

// guide returns the blocks in a language in the section on Go of the guide.
func guide(t *testing.T, language string) (blocks []string) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(root, "docs/guides/clients.md"))
	require.NoError(t, err)
	_, section, found := strings.Cut(string(page), "\n## Go\n")
	require.True(t, found)
	section, _, _ = strings.Cut(section, "\n## ")
	for _, block := range regexp.MustCompile("(?ms)^```"+language+"\\b[^\n]*\n(.*?)^```$").FindAllStringSubmatch(section, -1) {
		blocks = append(blocks, block[1])
	}
	return blocks
}

// TestModule checks that the lines of the guide build a program in an empty folder beside a clone, and that a program
// gets Parquet and SQLite only if it imports what needs them.
func TestModule(t *testing.T) {
	t.Parallel()
	clone, err := filepath.Abs(root)
	require.NoError(t, err)
	commands, code := guide(t, "sh"), guide(t, "go")
	require.Len(t, commands, 3)
	require.Len(t, code, 1)
	// folder follows the guide up to a program, and returns its folder.
	folder := func(t *testing.T, lines, program string) string {
		t.Helper()
		parent := t.TempDir()
		dir := filepath.Join(parent, "rooms")
		require.NoError(t, os.Symlink(clone, filepath.Join(parent, "roomsensor")))
		require.NoError(t, os.Mkdir(dir, 0o700))
		run(t, dir, nil, "sh", "-ec", lines)
		require.NoError(t, os.WriteFile(filepath.Join(dir, "main.go"), []byte(program), 0o600))
		return dir
	}
	sums := func(t *testing.T, dir string) string {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(dir, "go.sum"))
		require.NoError(t, err)
		return string(text)
	}
	t.Run("client", func(t *testing.T) {
		t.Parallel()
		s := startFixture(t)
		program := strings.NewReplacer("http://127.0.0.1:8080", s.URL, "YOUR_API_KEY", s.Key).Replace(code[0])
		dir := folder(t, commands[0], program)
		out := run(t, dir, nil, "sh", "-ec", commands[1])
		require.Contains(t, out, weightRoom.String()+" 0\n")
		require.Regexp(t, `^github.com/google/uuid \S+ \S+\ngithub.com/google/uuid \S+/go.mod \S+\n$`, sums(t, dir))
	})
	t.Run("export and localcopy", func(t *testing.T) {
		t.Parallel()
		const program = "package main\n\nimport _ \"roomsensor/client/localcopy/sqlite\"\n\nfunc main() {}\n"
		dir := folder(t, commands[0]+commands[2], program)
		run(t, dir, nil, "go", "list", "-mod=mod", "-deps", ".") // go mod tidy needs the modules of foreign tests.
		require.Regexp(t, `(?s)parquet-go.*modernc.org/sqlite `, sums(t, dir))
	})
}
