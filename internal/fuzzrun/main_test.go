package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFind(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(root, name), []byte(text), 0o600))
	}
	write("a/a_test.go", "func FuzzOne(f *testing.F) {}\n\nfunc FuzzTwo(t *testing.F) {}\nfunc FuzzNone(f int) {}\n")
	write("b/b.go", "func FuzzThree(f *testing.F) {}\n")
	write(".hidden/c_test.go", "func FuzzFour(f *testing.F) {}\n")
	a := filepath.Join(root, "a")
	found, err := find(root, nil)
	require.NoError(t, err)
	require.Equal(t, []target{{a, "FuzzOne"}, {a, "FuzzTwo"}}, found)
	found, err = find(root, regexp.MustCompile("wo$"))
	require.NoError(t, err)
	require.Equal(t, []target{{a, "FuzzTwo"}}, found)
	_, err = find(root, regexp.MustCompile("x"))
	require.ErrorContains(t, err, "no such target")
	_, err = find(filepath.Join(root, "none"), nil)
	require.ErrorIs(t, err, os.ErrNotExist)
}

// Every target that the documentation and CI name is there.
func TestTargetsOfTheModule(t *testing.T) {
	t.Parallel()
	found, err := find(filepath.Join("..", ".."), nil)
	require.NoError(t, err)
	names := map[string]bool{}
	for _, t := range found {
		names[t.name] = true
	}
	ci, err := os.ReadFile(filepath.Join("..", "..", ".ci", "run"))
	require.NoError(t, err)
	lists := regexp.MustCompile(`\^Fuzz\(([\w|]+)\)\$`).FindAllSubmatch(ci, -1)
	require.NotEmpty(t, lists)
	for _, list := range lists {
		for name := range bytes.SplitSeq(list[1], []byte("|")) {
			require.True(t, names["Fuzz"+string(name)], "%s", name)
		}
	}
}

func TestTally(t *testing.T) {
	t.Parallel()
	require.Equal(t, "3435 inputs in 6s", tally("fuzz: elapsed: 3s, execs: 1 (0/sec)\nfuzz: elapsed: 6s, execs: 3435 (1144/sec), new interesting: 11\nPASS\n"))
	require.Equal(t, "no word of progress", tally("PASS"))
}

func TestOutOfTime(t *testing.T) {
	t.Parallel()
	late := "fuzz: elapsed: 3s, execs: 1 (0/sec)\n--- FAIL: FuzzX (3.20s)\n    context deadline exceeded\nFAIL\n"
	require.True(t, outOfTime(late))
	require.False(t, outOfTime(late+"    Failing input written to testdata/fuzz/FuzzX/1\n"))
	require.False(t, outOfTime("--- FAIL: FuzzX (3.20s)\n    x_test.go:1: context deadline exceeded\n"))
}

func TestCommand(t *testing.T) {
	t.Parallel()
	r := runner{dir: "/tmp/x", url: "postgres://", options: options{guided: true, time: 20e9}}
	one := target{"internal/api", "FuzzX"}
	require.Equal(t, []string{"go", "test", "-vet=off", "-run=^$", "-fuzz=^FuzzX$", "-fuzztime=20s", "-parallel=1"}, r.command(t.Context(), one).Args)
	r.guided = false
	cmd := r.command(t.Context(), one)
	require.Equal(t, "/tmp/x/internal_api.test", cmd.Path)
	require.Contains(t, cmd.Args, "-test.fuzz=^FuzzX$")
	require.Equal(t, "internal/api", cmd.Dir)
	require.Contains(t, cmd.Env, "TEST_DATABASE_URL=postgres://")
}

func TestWrongFlags(t *testing.T) {
	t.Parallel()
	var said bytes.Buffer
	require.Equal(t, 2, run(t.Context(), []string{"-time=x"}, &said, &said))
	require.Equal(t, 2, run(t.Context(), []string{"-run=("}, &said, &said))
	require.Contains(t, said.String(), "-guided")
}
