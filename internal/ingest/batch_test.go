package ingest

import (
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/upload"
)

// heldMsg counts how often the queue was asked for more time.
type heldMsg struct {
	jetstream.Msg
	prolonged atomic.Int64
}

func (m *heldMsg) InProgress() error {
	m.prolonged.Add(1)
	return nil
}

// holding is a delivery with some readings.
func holding(readings int) *delivery {
	return &delivery{upload: &upload.Upload{Readings: make([]upload.Reading, readings)}, msg: &heldMsg{}}
}

func prolonged(d *delivery) int64 { return d.msg.(*heldMsg).prolonged.Load() }

// collecting runs collect; its channels have no room, like those of a worker.
func collecting(t *testing.T) (chan *delivery, chan *batch) {
	t.Helper()
	in, out := make(chan *delivery), make(chan *batch)
	go collect(in, out)
	return in, out
}

func TestABatchGoesOutWhenItIsOld(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		in, out := collecting(t)
		pass(time.Hour) // An idle worker collects nothing.
		started := time.Now()
		in <- holding(1)
		in <- holding(1)
		b := <-out
		require.Len(t, b.deliveries, 2)
		require.Equal(t, flushAge, time.Since(started))
		close(in)
		_, open := <-out
		require.False(t, open)
	})
}

func TestABatchGoesOutWhenItIsWorthIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		in, out := collecting(t)
		started := time.Now()
		go func() {
			defer close(in)
			for range flushReadings {
				in <- holding(1)
			}
		}()
		b := <-out
		require.Equal(t, flushReadings, b.readings)
		require.Zero(t, time.Since(started))
		_, open := <-out
		require.False(t, open)
	})
}

func TestABatchGoesOutAtTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		in, out := collecting(t)
		in <- holding(1)
		close(in)
		require.Len(t, (<-out).deliveries, 1)
		_, open := <-out
		require.False(t, open)
	})
}

// Whichever cap is met first ends it, so that what a worker holds is bounded whatever uploads are like.
func TestABatchGrowsToItsCapWhileNoWriterTakesIt(t *testing.T) {
	t.Parallel()
	weighing := func(bytes int) *delivery {
		d := holding(1)
		d.text = make([]byte, bytes)
		return d
	}
	for name, test := range map[string]struct {
		next func() *delivery
		most int
	}{
		"readings": {func() *delivery { return holding(100) }, capReadings / 100},
		"uploads":  {func() *delivery { return holding(1) }, capDeliveries},
		"bytes":    {func() *delivery { return weighing(1 << 20) }, capBytes >> 20},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { growsTo(t, test.most, test.next) })
		})
	}
}

func growsTo(t *testing.T, most int, next func() *delivery) {
	t.Helper()
	in, out := collecting(t)
	taken := 0
	for {
		select {
		case in <- next():
			taken++
			continue
		case <-time.After(time.Minute): // Nothing more is taken in.
		}
		break
	}
	require.Equal(t, most, taken)
	b := <-out
	require.Len(t, b.deliveries, most)
	require.Equal(t, int64(time.Minute/prolongEvery), prolonged(b.deliveries[0]), "it must not go to another worker meanwhile")
	close(in)
	<-out
}

func TestABatchIsProlongedWhileItIsStored(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &batch{}
		b.add(holding(1))
		stop := prolongWhile(b)
		pass(4*prolongEvery + time.Second)
		stop()
		require.Equal(t, int64(4), prolonged(b.deliveries[0]))
		pass(time.Hour)
		require.Equal(t, int64(4), prolonged(b.deliveries[0]))
	})
}

func TestEveryDeliveryIsInOneBatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		in, out := collecting(t)
		var sent []*delivery
		go func() {
			defer close(in)
			for i := range 5_000 {
				d := holding(i % 17)
				sent = append(sent, d)
				in <- d
				if i%97 == 0 {
					pass(time.Duration(i%40) * time.Millisecond)
				}
			}
		}()
		var got []*delivery
		for b := range out {
			got = append(got, b.deliveries...)
			pass(time.Duration(len(got)%30) * time.Millisecond)
		}
		require.True(t, slices.Equal(sent, got))
	})
}

func TestBackoffGrowsToItsMost(t *testing.T) {
	t.Parallel()
	var b backoff
	for range 100 {
		most := min(leastPause<<min(b.failures, 10), mostPause)
		pause := b.next()
		require.GreaterOrEqual(t, pause, most/2)
		require.Less(t, pause, most)
	}
	b.reset()
	require.Less(t, b.next(), leastPause)
}
