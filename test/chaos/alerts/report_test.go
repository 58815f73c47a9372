package alerts

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestReport(t *testing.T) {
	t.Parallel()
	r := &Report{Alerts: []Result{{Alert: "A", Fire: 1, Clear: 2}, {Alert: "B", Fire: 3, Clear: 4}}}
	require.NoError(t, r.Failure())
	verdict := func() string {
		var out bytes.Buffer
		require.NoError(t, r.Print(&out))
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		return lines[len(lines)-1]
	}
	require.Equal(t, "2 of 2 alerts fired and cleared", verdict())

	r.Findings = []string{"a command shows nothing"}
	require.ErrorContains(t, r.Failure(), "a command shows nothing")
	r.Findings = nil
	r.Alerts[1].Clear = -1
	require.Error(t, r.Failure())
	require.Equal(t, "1 of 2 alerts fired and cleared", verdict())
}

// TestResults checks the times of an alert that fires and clears, of one that fires only, and the others.
func TestResults(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 11, 23, 3, 0, 0, 0, time.UTC)
	at := func(seconds int) time.Time { return began.Add(time.Duration(seconds) * time.Second) }
	e := &env{names: []string{"A", "B", "C"}}
	e.states.fired = map[string]time.Time{"A": at(5), "B": at(6), "C": at(7)}
	e.states.ended = map[string]time.Time{"A": at(25), "B": at(8)}
	list := e.results(&fault{does: "it breaks", alerts: []string{"A", "B"}}, began, at(10), at(20))
	require.Equal(t, []Result{
		{Alert: "A", Fault: "it breaks", Fire: 5, Clear: 5, Others: []string{"C"}},
		{Alert: "B", Fault: "it breaks", Fire: 6, Clear: -1, Others: []string{"C"}},
	}, list)
}
