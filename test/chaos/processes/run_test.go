package processes

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"roomsensor/test/dbtest"
	"roomsensor/test/harness"
)

func TestMain(m *testing.M) {
	// If a connection ends while a toxic holds data, Toxiproxy leaks the goroutine that holds the data,
	// or the one that wants to pass more of it on.
	dbtest.Verify(m, goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2/toxics.(*ToxicStub).Run"),
		goleak.IgnoreAnyFunction("github.com/Shopify/toxiproxy/v2.(*ToxicLink).read"))
}

// TestShortTrial runs a short trial with every kind of fault. `go tool task chaos -- --seed N` has other seeds.
func TestShortTrial(t *testing.T) {
	t.Parallel()
	o := Short(1)
	o.Progress = t.Output()
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

func TestReportFailure(t *testing.T) {
	t.Parallel()
	r := newReport(Short(1), harness.Report{}, nil, Plan{{Kind: KillWorker}})
	require.ErrorContains(t, r.Failure(), "the plan was not fully carried out")
	require.ErrorIs(t, r.Failure(), harness.ErrFailed)
	require.NoError(t, newReport(Short(1), harness.Report{}, nil, nil).Failure())
}
