package cluster

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
)

func TestSuccesses(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, time.November, 20, 10, 0, 0, 0, time.UTC)
	at := func(second int) time.Time { return began.Add(time.Duration(second) * time.Second) }
	s := &successes{}
	require.Equal(t, 10*time.Second, s.outage(at(0), at(10)), "no success")
	require.Zero(t, s.firstAfter(began))
	for _, second := range []int{14, 2, 4, 5} { // In random order, as several senders add them.
		s.add(at(second))
	}
	require.Equal(t, 5*time.Second, s.outage(at(0), at(10)))
	require.Equal(t, 3*time.Second, s.outage(at(0), at(8)))
	require.Equal(t, 9*time.Second, s.outage(at(3), at(15)), "from the success at 5 to the one at 14")
	require.Equal(t, 2*time.Second, s.outage(at(6), at(8)), "only the part within the span counts")
	require.Equal(t, at(5), s.firstAfter(at(4)))
	s.addFailure(at(3), "no answer")
	s.addFailure(at(4), "503")
	s.addFailure(at(10), "503")
	require.Equal(t, map[string]int{"no answer": 1, "503": 1}, s.failures(at(3), at(10)))
}

func TestCheckReplicas(t *testing.T) {
	t.Parallel()
	follower := func(current, offline bool) *jetstream.PeerInfo {
		return &jetstream.PeerInfo{Name: "nats-2", Current: current, Offline: offline}
	}
	good := follower(true, false)
	for name, info := range map[string]*jetstream.ClusterInfo{
		"no cluster":  nil,
		"no leader":   {Replicas: []*jetstream.PeerInfo{good, good}},
		"no follower": {Leader: "nats-1", Replicas: []*jetstream.PeerInfo{good}},
		"behind":      {Leader: "nats-1", Replicas: []*jetstream.PeerInfo{good, follower(false, false)}},
		"offline":     {Leader: "nats-1", Replicas: []*jetstream.PeerInfo{follower(true, true), good}},
		"complete":    {Leader: "nats-1", Replicas: []*jetstream.PeerInfo{good, good}},
	} {
		require.Equal(t, name == "complete", checkReplicas("stream", info) == nil, name)
	}
}

func TestReport(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, time.November, 20, 10, 0, 0, 0, time.UTC)
	r := &Report{Outages: []Outage{{
		Event:    Event{Fault: "kill the primary", Member: "postgres-1", Began: began, Recovered: began.Add(31 * time.Second)},
		Receiver: 400 * time.Millisecond, Commits: 7 * time.Second, FirstCommit: 2 * time.Second,
		Failed: map[string]int{"503": 2, "no answer": 1},
	}}}
	var text bytes.Buffer
	require.NoError(t, r.Print(&text))
	require.Regexp(t, `kill the primary +0\.4 s +0\.0 s +7\.0 s +0\.0 s +3 +31\.0 s +postgres-1, first commit 2\.0 s after the promotion, 2 × 503, 1 × no answer\n`, text.String())
	require.True(t, strings.HasSuffix(text.String(), "\n0 lost, 0 duplicated, 0 wrong, 0 phantom\n"))
	require.NoError(t, r.Failure())
}

func TestOptionsValidate(t *testing.T) {
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
