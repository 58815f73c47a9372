package abuse

import (
	"bytes"
	"context"
	"errors"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/test/harness"
)

func TestReport(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*Report)
		last   string
		reason string
	}{
		"passed":      {func(*Report) {}, "0 failed requests, p99 3.0x, 0 processes over their limit\n", ""},
		"failed":      {func(r *Report) { r.Attacks[0].Failed = 2; r.Attacks[0].Failures = map[string]int{"/x: status 503": 2} }, "2 failed requests, p99 3.0x, 0 processes over their limit\n", "b: 2 x /x: status 503"},
		"slow":        {func(r *Report) { r.Attacks[1].Ratio = 3.1 }, "0 failed requests, p99 3.1x, 0 processes over their limit\n", "c: p99 3.1x"},
		"over":        {func(r *Report) { r.Attacks[1].Peaks = []Peak{{"api", 300, true}, {"worker", 9, false}} }, "0 failed requests, p99 3.0x, 1 processes over their limit\n", "c: the api took 300 MiB"},
		"not correct": {func(r *Report) { r.Findings = []string{"a broken promise"} }, "1 failed requests, p99 3.0x, 0 processes over their limit\n", "a broken promise"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &Report{Options: Short(0), Attacks: []Result{{Attack: "b", Ratio: 3}, {Attack: "c"}}}
			test.change(r)
			var out bytes.Buffer
			require.NoError(t, r.Print(&out))
			require.Regexp(t, test.last+"$", out.String())
			if test.reason == "" {
				require.NoError(t, r.Failure())
				return
			}
			require.ErrorIs(t, r.Failure(), harness.ErrFailed)
			require.ErrorContains(t, r.Failure(), test.reason)
		})
	}
}

// The median smooths the p99 without an attack, and a slice that was slow because of the machine counts as it was.
func TestIdle(t *testing.T) {
	t.Parallel()
	slow := func(d time.Duration) *slice {
		s := newSlice(false)
		s.took[reads] = []time.Duration{d}
		return s
	}
	i := idle{}
	for _, d := range []time.Duration{2, 9, 3} {
		i.add(slow(d))
	}
	require.Equal(t, map[kind]time.Duration{reads: 3}, i.with(slow(2)))
	require.Equal(t, map[kind]time.Duration{reads: 9}, i.with(slow(9)))
}

func TestP99(t *testing.T) {
	t.Parallel()
	var took []time.Duration
	require.Zero(t, p99(took))
	for i := range 200 {
		took = append(took, time.Duration(200-i))
	}
	require.Equal(t, time.Duration(198), p99(took))
}

func TestResult(t *testing.T) {
	t.Parallel()
	struck := newSlice(false)
	struck.took[reads] = []time.Duration{160 * time.Millisecond}
	struck.took[uploads] = []time.Duration{900 * time.Millisecond}
	struck.fail("x")
	before := map[kind]time.Duration{reads: time.Millisecond, uploads: 300 * time.Millisecond}
	r := newResult(&attack{name: "a"}, before, struck, nil)
	require.Equal(t, 3.2, r.Ratio, "160 ms are compared with the floor of 50 ms")
	require.Equal(t, map[kind]Pair{reads: {1, 160}, uploads: {300, 900}}, r.P99)
	require.Equal(t, 1, r.Failed)
	require.Zero(t, newResult(&attack{patient: true}, before, struck, nil).Ratio, "it is not judged")

	r = Result{}
	r.add(Result{Ratio: 4, Failed: 1, Failures: map[string]int{"x": 1}, Peaks: []Peak{{"api", 300, true}}})
	r.add(Result{Ratio: 2, Failed: 2, Failures: map[string]int{"x": 1, "y": 1}, Peaks: []Peak{{"api", 100, false}}})
	r.add(Result{Ratio: 5, Peaks: []Peak{{"api", 200, false}}})
	require.Equal(t, Result{
		Rounds: 3, Ratio: 2, Failed: 3, Failures: map[string]int{"x": 2, "y": 1}, Peaks: []Peak{{"api", 300, true}},
	}, r)
}

func TestReason(t *testing.T) {
	t.Parallel()
	require.EqualError(t, reason(&url.Error{Op: "Get", URL: "http://x", Err: errors.New("EOF")}), "EOF")
	require.EqualError(t, reason(&url.Error{Op: "Get", URL: "http://x", Err: context.DeadlineExceeded}), "no answer within 15s")
}
