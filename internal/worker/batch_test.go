package worker

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/upload"
)

// countedMessage counts how often it is extended and acknowledged.
type countedMessage struct {
	message
	extended, acks atomic.Int64
}

func (m *countedMessage) Ack() error {
	m.acks.Add(1)
	return nil
}

func (m *countedMessage) Extend() { m.extended.Add(1) }

// deliveryWith returns a delivery with some readings.
func deliveryWith(readings int) *delivery {
	return &delivery{upload: &upload.Upload{Readings: make([]upload.Reading, readings)}, message: &countedMessage{}}
}

func extensions(d *delivery) int64 { return d.message.(*countedMessage).extended.Load() }

// startCollect runs collect with unbuffered channels, as a worker does.
func startCollect() (chan *delivery, chan *batch) {
	in, out := make(chan *delivery), make(chan *batch)
	go collect(in, out, newBatch)
	return in, out
}

func requireClosed(t *testing.T, out <-chan *batch) {
	t.Helper()
	_, open := <-out
	require.False(t, open)
}

func TestCollect(t *testing.T) {
	t.Parallel()
	t.Run("sends a batch when it is old", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			in, out := startCollect()
			time.Sleep(time.Hour) // An idle worker sends nothing.
			started := time.Now()
			in <- deliveryWith(1)
			in <- deliveryWith(1)
			require.Len(t, (<-out).deliveries, 2)
			require.Equal(t, flushAge, time.Since(started))
			close(in)
			requireClosed(t, out)
		})
	})

	t.Run("sends a batch when it is large", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			in, out := startCollect()
			started := time.Now()
			go func() {
				defer close(in)
				for range flushReadings {
					in <- deliveryWith(1)
				}
			}()
			require.Equal(t, flushReadings, (<-out).readings)
			require.Zero(t, time.Since(started))
			requireClosed(t, out)
		})
	})

	t.Run("sends the last batch at the end", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			in, out := startCollect()
			in <- deliveryWith(1)
			close(in)
			require.Len(t, (<-out).deliveries, 1)
			requireClosed(t, out)
		})
	})
}

// A batch stops growing at the first cap, which bounds what a worker holds for any kind of uploads.
func TestCollectCap(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		next func() *delivery
		want int
	}{
		"readings": {func() *delivery { return deliveryWith(100) }, capReadings / 100},
		"uploads":  {func() *delivery { return deliveryWith(1) }, capDeliveries},
		"bytes": {func() *delivery {
			d := deliveryWith(1)
			d.text = make([]byte, 1<<20)
			return d
		}, capBytes >> 20},
	} {
		t.Run("stops receiving at the cap of "+name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				in, out := startCollect()
				received := 0
				for full := false; !full; {
					select {
					case in <- test.next():
						received++
					case <-time.After(time.Minute):
						full = true
					}
				}
				require.Equal(t, test.want, received)
				b := <-out
				require.Len(t, b.deliveries, test.want)
				require.Equal(t, int64(time.Minute/extendEvery), extensions(b.deliveries[0]), "it must not go to another worker meanwhile")
				close(in)
				requireClosed(t, out)
			})
		})
	}
}

// A batch is extended while it is written, and not afterwards.
func TestExtendWhile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &batch{}
		b.add(deliveryWith(1))
		stop := extendWhile(t.Context(), b)
		time.Sleep(4*extendEvery + time.Second)
		stop()
		require.Equal(t, int64(4), extensions(b.deliveries[0]))
		time.Sleep(time.Hour)
		require.Equal(t, int64(4), extensions(b.deliveries[0]))
	})
}
