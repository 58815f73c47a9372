package queue_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/queue"
)

func TestPublishStoresInOrder(t *testing.T) {
	t.Parallel()
	f := setup(t, small)
	require.NoError(t, f.Declare(f.ctx))
	var texts []string
	for i := range 300 {
		texts = append(texts, strings.Repeat("x", i+1))
	}
	sequences := f.publish(t, texts...)
	for i, sequence := range sequences {
		require.Equal(t, uint64(i+1), sequence)
	}
	i := 0
	f.read(t, 300, func(msg jetstream.Msg) {
		require.Equal(t, texts[i], string(msg.Data()))
		i++
	})
}

func TestPublishTakesTheSameTextTwice(t *testing.T) {
	t.Parallel()
	f := setup(t, small)
	require.NoError(t, f.Declare(f.ctx))
	require.Equal(t, []uint64{1}, f.publish(t, "same"))
	require.Equal(t, []uint64{2}, f.publish(t, "same"))
}

func TestPublishSaysWhatAFullStreamDidNotTake(t *testing.T) {
	t.Parallel()
	f := setup(t, queue.Config{Replicas: 1, MaxBytes: 1 << 20})
	require.NoError(t, f.Declare(f.ctx))
	big := strings.Repeat("x", 300_000)
	sequences, err := f.Publish(f.ctx, messages(big, big, big, big, "small"))
	require.Error(t, err)
	require.Equal(t, []uint64{1, 2, 3, 0}, sequences[:4])

	f.settle(t, 3)
	purged, err := f.Purge(f.ctx, 0)
	require.NoError(t, err)
	require.Positive(t, purged)
	f.publish(t, big)
}

func TestDescribeTellsArrivalAndTeam(t *testing.T) {
	t.Parallel()
	f := setup(t, small)
	require.NoError(t, f.Declare(f.ctx))
	team := uuid.New()
	before := time.Now()
	_, err := f.Publish(f.ctx, []queue.Message{{HardwareID: "dev:1", Team: &team}, {HardwareID: "dev:2"}})
	require.NoError(t, err)
	_, err = f.js.PublishMsg(f.ctx, &nats.Msg{Subject: "uploads.x", Header: nats.Header{queue.TeamHeader: {"nobody"}}})
	require.NoError(t, err)

	var got []queue.Delivery
	f.read(t, 3, func(msg jetstream.Msg) {
		d, err := queue.Describe(msg)
		require.NoError(t, err)
		require.Equal(t, uint64(2-len(got)), d.Behind)
		d.Behind = 0
		got = append(got, d)
		require.NoError(t, msg.Nak())
	})
	require.Equal(t, &team, got[0].Arrival.Team)
	require.Equal(t, "dev:1", got[0].HardwareID)
	require.Equal(t, uint64(1), got[0].Arrival.Sequence)
	require.WithinRange(t, got[0].Arrival.At, before.Truncate(time.Microsecond), time.Now())
	require.Zero(t, got[0].Arrival.At.Nanosecond()%1000)
	require.False(t, got[0].TeamUnclear)
	require.Nil(t, got[1].Arrival.Team)
	require.True(t, got[2].TeamUnclear)

	f.read(t, 3, func(msg jetstream.Msg) {
		again, err := queue.Describe(msg)
		require.NoError(t, err)
		again.Behind = 0
		require.Contains(t, got, again, "a redelivery keeps its arrival")
	})
}
