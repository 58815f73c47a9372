package worker

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/queue"
	"roomsensor/internal/roomsensor"
	"roomsensor/test/conformance"
	"roomsensor/test/proctest"
)

// storedUpload returns the result of an upload that was stored.
func storedUpload(sequence uint64, team *uuid.UUID, size int) result {
	arrival := roomsensor.Arrival{Sequence: sequence, Team: team}
	return result{delivery: &delivery{arrival: arrival, text: make([]byte, size-laneUploadBytes)}, stored: true}
}

// The shares of a team are a part of all shares as its uploads are of all uploads in bytes, however large each one is.
func TestStreamSharesCount(t *testing.T) {
	t.Parallel()
	large := uuid.New()
	var s streamShares
	sums := map[uuid.UUID]int64{}
	for i := range uint64(1_000) {
		results := []result{storedUpload(2*i+1, nil, 400)}
		if i%250 == 0 {
			results = append(results, storedUpload(2*i+2, &large, 300_000), result{delivery: &delivery{text: make([]byte, 1<<20)}})
		}
		for _, share := range s.count(results, 2_000) {
			sums[share.Team] += share.Bytes
			require.Equal(t, share.Team == large, share.Sequence%2 == 0)
		}
	}
	require.InDelta(t, 400_000, sums[uuid.Nil], 4_000)
	require.InDelta(t, 4*300_000, sums[large], 4_000)

	for i := range uint64(2 * sharesOfStream) {
		s.count([]result{storedUpload(i, nil, 2_000)}, 2_000)
	}
	require.Len(t, s.known, sharesOfStream)
}

// unreadableShares is a store whose shares cannot be read.
type unreadableShares struct{ *memoryStore }

func (unreadableShares) StreamShares(context.Context) ([]roomsensor.StreamShare, error) {
	return nil, errors.New("the database is unavailable")
}

// While the database is unavailable, a worker uses the shares that it knows.
func TestStreamSharesWithoutDatabase(t *testing.T) {
	t.Parallel()
	w := New(Config{Store: unreadableShares{newMemoryStore(nil)}, Log: zerolog.Nop(), Metrics: prometheus.NewRegistry()})
	shares := w.shares.count([]result{storedUpload(7, nil, 5_000)}, 2_000)
	require.Equal(t, []roomsensor.StreamShare{{Sequence: 7, Bytes: 4_000}}, shares)
	require.Equal(t, shares, w.streamShares(t.Context()))
}

// A worker whose stream is nearly full of stored uploads deletes those of the team with the most at once. The stream is
// full only when its size is reduced: before, a purge could find small uploads that are stored and large ones that wait.
func TestPurgeStreamNearlyFull(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 53 e")
	const size, smalls, larges = 4 << 20, 100, 39
	e := newEnvOf(t, 2*size)
	f, store := inMemory()
	w, _ := e.start(t, store)
	small, large := messageOf(f.second, readingAt(clock(10, 0, 0), "")), messageOf(f.second, readingAt(clock(10, 5, 0), `"x":"`+strings.Repeat("x", 100_000)+`"`))
	large.Team = &f.ours
	e.publish(t, slices.Repeat([]queue.Message{small}, smalls)...)
	e.publish(t, slices.Repeat([]queue.Message{large}, larges)...)
	ofLarge := func() (sequences []uint64) {
		shares, err := store.StreamShares(t.Context())
		require.NoError(t, err)
		for _, share := range shares {
			if share.Team == f.ours {
				sequences = append(sequences, share.Sequence)
			}
		}
		return sequences
	}
	require.Eventually(t, func() bool { return len(ofLarge()) == larges }, patience, 10*time.Millisecond) // Each one is a share.
	e.settle(t)

	stream, err := e.js.Stream(e.ctx, queue.StreamName)
	require.NoError(t, err)
	config := stream.CachedInfo().Config
	config.MaxBytes = size
	_, err = e.js.UpdateStream(e.ctx, config)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return proctest.Value(t, w.metrics.purgedEarly) > 0 }, patience, 10*time.Millisecond)
	state := e.stream(t)
	require.Equal(t, uint64(1), state.FirstSeq, "the small ones stay, which are the oldest")
	require.LessOrEqual(t, state.Bytes, uint64(size*8/10))
	require.Eventually(t, func() bool { // The worker deletes the shares after the uploads.
		left := ofLarge()
		return len(left) > 0 && slices.Min(left) > smalls+uint64(proctest.Value(t, w.metrics.purgedEarly))
	}, patience, 10*time.Millisecond)
}
