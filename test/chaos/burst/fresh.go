package burst

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"roomsensor/client"
	"roomsensor/internal/retry"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/simulate"
	"roomsensor/test/harness"
)

// fresh sends uploads of devices that were never offline, and measures when each is confirmed and when it is visible in
// /devices/current.
type fresh struct {
	*env
	receiver *harness.Receiver
	reader   *reader
	devices  map[uuid.UUID]int
	refused  atomic.Int64 // 503 answers

	mu      sync.Mutex
	sent    []probe
	waiting [][]int // by device: indices in sent that are not visible yet, oldest first
	ended   bool
}

// probe is an upload with one reading. Its CO2 value is its number, so that the latest reading of a device shows which
// of its uploads are visible.
type probe struct{ sent, confirmed, visible time.Time }

func (e *env) newFresh(receiver *harness.Receiver, r *reader) *fresh {
	f := &fresh{
		env: e, receiver: receiver, reader: r, devices: map[uuid.UUID]int{}, waiting: make([][]int, len(e.fresh)),
	}
	for i, id := range e.fresh {
		f.devices[id] = i
	}
	return f
}

// run sends until stop is closed and returns once all uploads are visible.
func (f *fresh) run(ctx context.Context, stop <-chan struct{}) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return f.send(ctx, group, stop) })
	group.Go(func() error { return f.watch(ctx) })
	return group.Wait() //nolint:wrapcheck // Wrapped by the functions.
}

// send posts at a constant rate. It does not wait for answers.
func (f *fresh) send(ctx context.Context, group *errgroup.Group, stop <-chan struct{}) error {
	ticker := time.NewTicker(time.Duration(float64(time.Second) / f.trial.options.FreshRate))
	defer ticker.Stop()
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return fmt.Errorf("sending fresh readings: %w", ctx.Err())
		case <-stop:
			f.mu.Lock()
			defer f.mu.Unlock()
			f.ended = true
			return nil
		case <-ticker.C:
		}
		i, text := f.next(n % len(f.waiting))
		group.Go(func() error {
			refused, err := f.receiver.PostUntilStored(ctx, f.ingestKey, text)
			f.refused.Add(int64(refused))
			f.mu.Lock()
			defer f.mu.Unlock()
			f.sent[i].confirmed = time.Now()
			return err
		})
	}
}

func (f *fresh) next(device int) (i int, text []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := time.Now()
	m := roomsensor.Measurement{MeasuredAt: now.UTC().Truncate(time.Microsecond)}
	f.sent = append(f.sent, probe{sent: now})
	m.Values.Set(roomsensor.CO2, float32(len(f.sent)))
	i = len(f.sent) - 1
	f.waiting[device] = append(f.waiting[device], i)
	u := simulate.Upload{
		HardwareID: f.freshFleet.HardwareID(device), SentAt: now, Firmware: "2.4.1", Readings: []roomsensor.Measurement{m},
	}
	return i, u.AppendJSON(nil)
}

// watchInterval is the precision of the time to visibility.
const watchInterval = 25 * time.Millisecond

func (f *fresh) watch(ctx context.Context) error {
	return retry.Until(ctx, watchInterval, func(ctx context.Context) (bool, error) {
		devices, err := f.reader.read(ctx, map[string]string{freshTag: "true"})
		if err != nil {
			return false, err
		}
		return f.markVisible(devices, time.Now()), nil
	})
}

// markVisible records which uploads a snapshot shows. It returns true once the last upload is visible.
func (f *fresh) markVisible(snapshot []client.CurrentDevice, at time.Time) (done bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range snapshot {
		device, shown := f.devices[snapshot[i].DeviceID], 0
		if latest := snapshot[i].Latest; latest != nil && latest.CO2PPM != nil {
			shown = int(*latest.CO2PPM)
		}
		for len(f.waiting[device]) > 0 && f.waiting[device][0] < shown {
			f.sent[f.waiting[device][0]].visible = at
			f.waiting[device] = f.waiting[device][1:]
		}
	}
	waiting := 0
	for _, indices := range f.waiting {
		waiting += len(indices)
	}
	return f.ended && waiting == 0
}

// result returns the latencies of the uploads that were sent between two instants.
func (f *fresh) result(from, to time.Time) FreshResult {
	f.mu.Lock()
	defer f.mu.Unlock()
	var confirmed, visible []time.Duration
	for _, p := range f.sent {
		if !p.sent.Before(from) && p.sent.Before(to) {
			confirmed = append(confirmed, p.confirmed.Sub(p.sent))
			visible = append(visible, p.visible.Sub(p.sent))
		}
	}
	return FreshResult{Uploads: len(visible), Confirmed: quantiles(confirmed), Visible: quantiles(visible)}
}
