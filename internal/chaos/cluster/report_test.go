package cluster

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
)

func TestGauge(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, time.November, 20, 10, 0, 0, 0, time.UTC)
	at := func(second int) time.Time { return began.Add(time.Duration(second) * time.Second) }
	g := &gauge{}
	require.Equal(t, 10*time.Second, g.outage(at(0), at(10)), "nothing ever worked")
	require.Zero(t, g.first(began))
	for _, second := range []int{14, 2, 4, 5} { // In no order, as several senders note them.
		g.success(at(second))
	}
	require.Equal(t, 5*time.Second, g.outage(at(0), at(10)))
	require.Equal(t, 3*time.Second, g.outage(at(0), at(8)))
	require.Equal(t, 9*time.Second, g.outage(at(3), at(15)), "from the success at 5 to the one at 14")
	require.Equal(t, 2*time.Second, g.outage(at(6), at(8)), "what began before counts within the span alone")
	require.Equal(t, at(5), g.first(at(4)))
	g.failure(at(3), "no answer")
	g.failure(at(4), "503")
	g.failure(at(10), "503")
	require.Equal(t, map[string]int{"no answer": 1, "503": 1}, g.failures(at(3), at(10)))
}

func TestComplete(t *testing.T) {
	t.Parallel()
	follower := func(current, offline bool) *jetstream.PeerInfo {
		return &jetstream.PeerInfo{Name: "nats-2", Current: current, Offline: offline}
	}
	good := follower(true, false)
	for name, info := range map[string]*jetstream.ClusterInfo{
		"no cluster":   nil,
		"no leader":    {Replicas: []*jetstream.PeerInfo{good, good}},
		"no follower":  {Leader: "nats-1", Replicas: []*jetstream.PeerInfo{good}},
		"behind":       {Leader: "nats-1", Replicas: []*jetstream.PeerInfo{good, follower(false, false)}},
		"not reached":  {Leader: "nats-1", Replicas: []*jetstream.PeerInfo{follower(true, true), good}},
		"all is there": {Leader: "nats-1", Replicas: []*jetstream.PeerInfo{good, good}},
	} {
		require.Equal(t, name == "all is there", complete("stream", info) == nil, name)
	}
}

func TestReport(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, time.November, 20, 10, 0, 0, 0, time.UTC)
	r := &Report{Outages: []Outage{{
		Event:    Event{Fault: "kill the primary", Whom: "postgres-1", Began: began, Whole: began.Add(31 * time.Second)},
		Receiver: 400 * time.Millisecond, Commits: 7 * time.Second, FirstCommit: 2 * time.Second,
		Failed: map[string]int{"503": 2, "no answer": 1},
	}}}
	var text bytes.Buffer
	require.NoError(t, r.Print(&text))
	require.Regexp(t, `kill the primary +0\.4 s +0\.0 s +7\.0 s +0\.0 s +3 +31\.0 s +postgres-1, first commit 2\.0 s after the promotion, 2 × 503, 1 × no answer\n`, text.String())
	require.True(t, strings.HasSuffix(text.String(), "\n0 lost, 0 duplicated, 0 wrong, 0 phantom\n"))
	require.NoError(t, r.Failure())

	path := filepath.Join(t.TempDir(), "report.json")
	require.NoError(t, r.Save(path))
	saved, err := os.ReadFile(path)
	require.NoError(t, err)
	var read Report
	require.NoError(t, json.Unmarshal(saved, &read))
	require.Equal(t, *r, read)

	r.Findings = []string{"worker-1 ended by itself"}
	require.ErrorContains(t, r.Failure(), "worker-1 ended by itself")
	require.ErrorIs(t, r.Failure(), ErrFailed)
	r.Findings, r.Verdict.Lost = nil, 1
	require.ErrorIs(t, r.Failure(), ErrFailed)
	require.NoError(t, (*Report)(nil).Failure())
	require.Error(t, r.Save(filepath.Join(t.TempDir(), "none", "report.json")))
}

func TestTrialsThatProveNothing(t *testing.T) {
	t.Parallel()
	for _, o := range []Options{Full(1), Short(1)} {
		require.NoError(t, o.Validate())
		o.Units = o.Teams - 1
		require.Error(t, o.Validate())
	}
	o := Full(1)
	o.Only = "earthquake"
	require.Error(t, o.Validate())
	o.Only = "primary"
	require.Len(t, o.kinds(), 2)
	require.Error(t, (&Options{}).Validate())
}
