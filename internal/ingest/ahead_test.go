package ingest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/queue"
	"roomsensor/internal/roomsensor"
)

// hurry runs a worker that takes the least for a backlog.
func (b *bench) hurry(t *testing.T, tables Store) *Worker {
	t.Helper()
	_, q := b.connect(t)
	w := NewWorker(WorkerConfig{Queue: q, Store: tables, Log: zerolog.Nop(), Metrics: prometheus.NewRegistry()})
	w.position.age, w.position.uploads = 0, 0
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return w
}

// heavy is an upload of days of readings.
func heavy(unit string, n int) queue.Message {
	var readings []string
	for i := range 1000 {
		readings = append(readings, at(clock(8, 0, 0).Add(-time.Duration(1000*n+i)*roomsensor.BucketLength), ""))
	}
	return queue.Message{HardwareID: unit, Text: []byte(`{"hardware_id":"` + unit + `","readings":[` + strings.Join(readings, ",") + `]}`)}
}

// Readings that were just measured are stored while days of another device's wait to be, and once more in their turn.
func TestFreshUploadsPassABacklog(t *testing.T) {
	t.Parallel()
	b, f := newBench(t), randomFleet()
	tables := newMemoryStore(f.units)
	stored := make(chan struct{})
	tables.fail = func(ctx context.Context, batch roomsensor.Batch) error {
		if slices.ContainsFunc(batch.Rows, func(r roomsensor.DeviceMeasurement) bool { return r.DeviceID == f.b }) {
			select {
			case <-stored: // Those of the late device wait for the others.
			case <-ctx.Done():
			}
		}
		return nil
	}
	const late, fresh = 100, 10
	var messages []queue.Message
	for n := range late {
		messages = append(messages, heavy(f.second, n))
	}
	for n := range fresh {
		text := textOf(f.first, 0, at(clock(20, 5*n, 0), fmt.Sprintf(`"lux":%d`, n))).text
		messages = append(messages, queue.Message{HardwareID: f.first, Text: text})
	}
	_, err := b.queue.Publish(b.ctx, messages)
	require.NoError(t, err)

	w := b.hurry(t, tables)
	require.Eventually(t, func() bool { return len(tables.snapshot().rows) == fresh }, patience, time.Millisecond)
	require.Zero(t, b.consumer(t).AckFloor.Stream)
	require.Zero(t, measured(t, w.metrics.uploads))
	close(stored)
	b.settled(t)
	require.Len(t, tables.snapshot().rows, fresh+1000*late)
	require.InDelta(t, late+fresh, measured(t, w.metrics.uploads), 0)
}

// What is stored ahead and what is stored in turn give the tables that one of them gives, whatever the uploads are.
func TestPassingABacklogChangesNoTable(t *testing.T) {
	t.Parallel()
	b, tables := newBench(t), newTables(t)
	letters := manyLetters(tables.fleet)
	b.hurry(t, tables)
	b.hurry(t, tables)
	b.publish(t, letters...)
	b.settled(t)
	b.stored(t, letters)
	require.Equal(t, tables.fleet.expect(letters), tables.snapshot(t))
}

func TestABacklogIsOldAndLong(t *testing.T) {
	t.Parallel()
	p := position{age: backlogAge, uploads: backlogUploads}
	late := func() bool { _, late := p.late(); return late }
	require.False(t, late(), "nothing was read")
	arrived := func(ago time.Duration) roomsensor.Arrival { return roomsensor.Arrival{At: time.Now().Add(-ago)} }
	p.note(&delivery{arrival: arrived(time.Hour), behind: backlogUploads - 1})
	require.False(t, late(), "a clock may be wrong")
	p.note(&delivery{arrival: arrived(0), behind: 1 << 20})
	require.False(t, late(), "it may be stored within moments")
	p.note(&delivery{arrival: arrived(time.Hour), behind: backlogUploads})
	require.True(t, late())
}
