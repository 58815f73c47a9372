package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"go/build"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"roomsensor/internal/conformance"
)

func TestMain(m *testing.M) {
	var err error
	if programsDir, err = os.MkdirTemp("", "roomsensor-chaos-test-"); err != nil {
		panic(err)
	}
	// Toxiproxy leaves a goroutine behind where a connection ends while its toxic holds data.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2/toxics.(*ToxicStub).Run"),
		goleak.Cleanup(func(code int) {
			_ = os.RemoveAll(programsDir)
			os.Exit(code)
		}))
}

// programsDir keeps what built compiles, once for all trials.
var programsDir string

var built = sync.OnceValues(func() (Programs, error) { return Build(context.Background(), programsDir) })

// short is the trial of the tests.
func short(t *testing.T) Options {
	t.Helper()
	o := Short(seed())
	var err error
	o.Programs, err = built()
	require.NoError(t, err)
	o.Progress = t.Output()
	return o
}

// seed is that of the trials of the tests. Another one every day finds what one seed does not.
func seed() uint64 { return uint64(time.Now().YearDay()) }

// TestShortTrial is the proof in small, with every kind of fault.
func TestShortTrial(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 38.1", "decision 38.2", "decision 39.1", "decision 41.13", "decision 41.16")
	o := short(t)
	report, err := Run(t.Context(), o)
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, report.Print(&out))
	t.Log(out.String())
	require.NoError(t, report.Failure())
	require.True(t, strings.HasSuffix(out.String(), "\n0 lost, 0 duplicated, 0 wrong, 0 phantom\n"))
	require.Equal(t, o.Faults, report.Faults)
	require.GreaterOrEqual(t, report.Rows, o.Readings)
	require.NotZero(t, report.Rejects)
	require.NotZero(t, report.Hits)
	require.NotZero(t, report.Visible.Uploads)
	require.NotZero(t, report.Uploads.Failed)
	require.NotZero(t, report.Uploads.Repeated)

	path := filepath.Join(t.TempDir(), "report.json")
	require.NoError(t, report.Save(path))
	saved, err := os.ReadFile(path)
	require.NoError(t, err)
	var read Report
	require.NoError(t, json.Unmarshal(saved, &read))
	require.Equal(t, report.Uploads, read.Uploads)
}

// TestWorkersThatAcknowledgeEarlyAreFound is the negative control: without it a trial that finds nothing proves nothing.
func TestWorkersThatAcknowledgeEarlyAreFound(t *testing.T) {
	t.Parallel()
	o := short(t)
	o.AckEarly, o.Dir = true, t.TempDir()
	o.Readings, o.Burst = 2_000, 8*time.Second
	o.Plan = Plan{{At: time.Second, Kind: KillDatabase, Target: databaseName, For: 3 * time.Second}}
	report, err := Run(t.Context(), o)
	require.NoError(t, err)
	require.Positive(t, report.Verdict.Lost, report.Verdict.String())
	require.ErrorIs(t, report.Failure(), ErrFailed)
}

// TestNoSwitchInProduction holds the switch of the negative control out of a program that is not built for a trial.
func TestNoSwitchInProduction(t *testing.T) {
	t.Parallel()
	ordinary := build.Default
	ordinary.BuildTags = nil
	in, err := ordinary.ImportDir("../ingest", 0)
	require.NoError(t, err)
	require.Contains(t, in.GoFiles, "ackearly.go")
	require.NotContains(t, in.GoFiles, "ackearly_chaos.go")
	for _, name := range in.GoFiles {
		source, err := os.ReadFile(filepath.Join("../ingest", name))
		require.NoError(t, err)
		require.NotContains(t, string(source), "CHAOS_ACK")
	}
}

func TestFailure(t *testing.T) {
	t.Parallel()
	var none *Report
	require.NoError(t, none.Failure())
	r := &Report{}
	require.NoError(t, r.Failure())
	r.Findings = []string{"worker-1 ended by itself"}
	require.ErrorContains(t, r.Failure(), "worker-1 ended by itself")
	require.ErrorIs(t, r.Failure(), ErrFailed)
	r.Findings, r.Verdict.Duplicated = nil, 1
	require.ErrorIs(t, r.Failure(), ErrFailed)
	require.Error(t, r.Save(filepath.Join(t.TempDir(), "none", "report.json")))
}
