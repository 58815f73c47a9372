package processes

import (
	"bytes"
	"context"
	"go/build"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"roomsensor/test/harness"
)

func TestMain(m *testing.M) {
	var err error
	if programsDir, err = os.MkdirTemp("", "roomsensor-chaos-test-"); err != nil {
		panic(err)
	}
	// If a connection ends while a toxic holds data, Toxiproxy leaks the goroutine that holds the data,
	// or the one that wants to pass more of it on.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2/toxics.(*ToxicStub).Run"),
		goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2.(*ToxicLink).read"),
		goleak.Cleanup(func(code int) {
			_ = os.RemoveAll(programsDir)
			os.Exit(code)
		}))
}

// programsDir contains the programs under test.
var programsDir string

// built compiles the programs once for all trials.
var built = sync.OnceValues(func() (harness.Programs, error) { return buildPrograms(context.Background(), programsDir) })

// testSeed is the seed of the trials in the tests. `go tool task chaos -- --seed N` uses others.
const testSeed = 1

// short returns the options of a trial in the tests.
func short(t *testing.T) Options {
	t.Helper()
	o := Short(testSeed)
	var err error
	o.Programs, err = built()
	require.NoError(t, err)
	o.Progress = t.Output()
	return o
}

// TestShortTrial runs a short trial with every kind of fault.
func TestShortTrial(t *testing.T) {
	t.Parallel()
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
	require.GreaterOrEqual(t, report.Followed, report.Rows)
	require.NotZero(t, report.Rejects)
	require.NotZero(t, report.Hits)
	require.NotZero(t, report.Visible.Uploads)
	require.NotZero(t, report.Uploads.Failed)
	require.NotZero(t, report.Uploads.Repeated)
}

// TestAckEarly is the negative control: a trial must find the losses of workers that acknowledge before they commit.
func TestAckEarly(t *testing.T) {
	t.Parallel()
	o := short(t)
	o.AckEarly, o.Dir = true, t.TempDir()
	o.Readings, o.Burst = 2_000, 8*time.Second
	o.Plan = Plan{{At: time.Second, Kind: KillDatabase, Target: databaseName, For: 3 * time.Second}}
	report, err := Run(t.Context(), o)
	require.NoError(t, err)
	require.Positive(t, report.Verdict.Lost, report.Verdict.String())
	require.ErrorIs(t, report.Failure(), harness.ErrFailed)
}

// TestAckEarlyBuildTag checks that a program without the build tag chaos cannot acknowledge early.
func TestAckEarlyBuildTag(t *testing.T) {
	t.Parallel()
	const dir = "../../../internal/worker"
	production := build.Default
	production.BuildTags = nil
	in, err := production.ImportDir(dir, 0)
	require.NoError(t, err)
	require.Contains(t, in.GoFiles, "ackearly.go")
	require.NotContains(t, in.GoFiles, "ackearly_chaos.go")
	for _, name := range in.GoFiles {
		source, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.NotContains(t, string(source), "CHAOS_ACK")
	}
}

func TestReportFailure(t *testing.T) {
	t.Parallel()
	r := newReport(Short(1), harness.Report{}, nil, Plan{{Kind: KillWorker}})
	require.ErrorContains(t, r.Failure(), "the plan was not fully carried out")
	require.ErrorIs(t, r.Failure(), harness.ErrFailed)
	require.NoError(t, newReport(Short(1), harness.Report{}, nil, nil).Failure())
}
