// Package model checks a model of ingest in Promela, upload.pml, with Spin: in all orders of its steps, with a crash at
// each of them, an upload that was confirmed is stored exactly once or rejected.
package model

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// The two ways in which Spin reports that the model is wrong.
const (
	assertion = "assertion violated" // a step leads to what must never be
	cycle     = "acceptance cycle"   // a run goes on without ever reaching an outcome
)

// mistakes are the macros of the model, and what each of them must violate.
var mistakes = map[string]string{
	"ACK_BEFORE_COMMIT":      assertion,
	"ASYNCHRONOUS_COMMIT":    assertion,
	"CONFIRM_BEFORE_APPEND":  assertion,
	"DROP_UNSETTLED":         assertion,
	"INSERT_WITHOUT_KEY":     assertion,
	"PUBACK_BEFORE_SYNC":     assertion,
	"REPLAY_DELETES_FIRST":   assertion,
	"RETURN_WHAT_IS_REFUSED": cycle,
}

// TestModel takes 10 seconds or more: it visits a million states.
func TestModel(t *testing.T) {
	t.Parallel()
	needSpin(t)
	require.Contains(t, check(t, "FAULTS=2", "-O2"), "errors: 0")
}

// TestMistakes shows that the model can fail.
func TestMistakes(t *testing.T) {
	t.Parallel()
	needSpin(t)
	text, err := os.ReadFile("upload.pml")
	require.NoError(t, err)
	var macros []string
	for _, found := range regexp.MustCompile(`(?m)^#ifn?def (\w+)`).FindAllStringSubmatch(string(text), -1) {
		if name := found[1]; name != "FAULTS" && !slices.Contains(macros, name) {
			macros = append(macros, name)
		}
	}
	require.Len(t, macros, len(mistakes))
	for _, name := range macros {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Contains(t, mistakes, name)
			require.Contains(t, check(t, name, "-O0"), mistakes[name])
		})
	}
}

// needSpin skips a test without Spin, unless ROOMSENSOR_MODEL is "all".
func needSpin(t *testing.T) {
	t.Helper()
	for program, pkg := range map[string]string{"spin": "spin", "cc": "gcc"} {
		if _, err := exec.LookPath(program); err != nil {
			require.NotEqual(t, "all", os.Getenv("ROOMSENSOR_MODEL"), "install Debian's package %s: %v", pkg, err)
			t.Skipf("%s is not installed", program)
		}
	}
}

// check lets Spin verify the model with a macro, up to the first error, and returns the result. It logs the number of
// states and the time.
func check(t *testing.T, macro, optimization string) string {
	t.Helper()
	dir := t.TempDir()
	model, err := filepath.Abs("upload.pml")
	require.NoError(t, err)
	var out string
	for _, argv := range [][]string{
		{"spin", "-a", "-D" + macro, model},
		{"cc", "-w", optimization, "-o", "pan", "pan.c"},
		{"./pan", "-a", "-m100000", "-w22"}, // Also runs that never end; depth of the search; 2^22 slots to begin with.
	} {
		cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
		cmd.Dir = dir
		result, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", result)
		out = string(result)
	}
	require.NotContains(t, out, "max search depth too small")
	t.Logf("%v", regexp.MustCompile(`errors: \d+|\d+ states, stored|elapsed time [\d.]+ seconds`).FindAllString(out, -1))
	return out
}
