package harness

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReport(t *testing.T) {
	t.Parallel()
	r := &Report{Rows: 7}
	require.NoError(t, r.Failure())
	var out strings.Builder
	require.NoError(t, r.Print(&out, []Line{{"seed", "4"}}, "table\n"))
	require.Contains(t, out.String(), "seed                     4\n")
	require.True(t, strings.HasSuffix(out.String(), "\ntable\n0 lost, 0 duplicated, 0 wrong, 0 phantom\n"))

	path := filepath.Join(t.TempDir(), "report.json")
	require.NoError(t, Save(path, r))
	saved, err := os.ReadFile(path)
	require.NoError(t, err)
	var read Report
	require.NoError(t, json.Unmarshal(saved, &read))
	require.Equal(t, *r, read)
	require.Error(t, Save(filepath.Join(t.TempDir(), "none", "report.json"), r))

	r.Findings = []string{"worker-1 ended by itself"}
	require.ErrorContains(t, r.Failure(), "worker-1 ended by itself")
	require.ErrorIs(t, r.Failure(), ErrFailed)
	r.Findings, r.Verdict.Duplicated = nil, 1
	require.ErrorIs(t, r.Failure(), ErrFailed)
}

func TestEnvClose(t *testing.T) {
	t.Parallel()
	e, err := NewEnv("", nil)
	require.NoError(t, err)
	log, err := e.LogFile("worker-1")
	require.NoError(t, err)
	require.FileExists(t, log.Name())
	require.NoError(t, e.Close(t.Context(), true))
	require.FileExists(t, log.Name())
	require.NoError(t, e.Close(t.Context(), false))
	require.NoDirExists(t, e.Dir)
	_, err = NewEnv("/dev/null/none", nil)
	require.ErrorContains(t, err, "preparing a trial")
}
