package abuse

import (
	"context"
	"io"
	"strings"
	"sync"
	"time"

	"roomsensor/internal/retry"
	"roomsensor/internal/roomsensor"
)

// returningKeys is the number of keys that come back at the same second.
const returningKeys = 1000

func returnAtOnce(t *target) (func(context.Context, *attacker), error) {
	return func(ctx context.Context, w *attacker) {
		spread(ctx, len(t.Keys), time.Second, func(ctx context.Context, i int) {
			w.get(ctx, "/v1/team", t.Keys[i], nil)
		})
		<-ctx.Done()
	}, nil
}

func sendOneKey(t *target) (func(context.Context, *attacker), error) {
	const requests = 20_000
	return func(ctx context.Context, w *attacker) {
		spread(ctx, requests, t.Duration, func(ctx context.Context, _ int) {
			w.get(ctx, "/v1/team", t.Keys[0], nil)
		})
	}, nil
}

// listDevices lists all devices, finds none by tags, and changes one device many times at once.
func listDevices(t *target) (func(context.Context, *attacker), error) {
	paths := []string{"/v1/devices?limit=1000", "/v1/devices/current?limit=1000"}
	return func(ctx context.Context, w *attacker) {
		const lists, filters, changes = 4, 24, 300
		var n [lists]int
		var group sync.WaitGroup
		defer group.Wait()
		group.Go(func() {
			repeat(ctx, filters, 10*time.Millisecond, func(ctx context.Context, i int) {
				w.get(ctx, "/v1/devices?limit=1&metadata.none=x", t.Keys[i%len(t.Keys)], nil)
			})
		})
		group.Go(func() {
			repeat(ctx, changes, time.Second, func(ctx context.Context, i int) {
				w.patch(ctx, "/v1/devices/"+t.Devices[0].String(), t.Keys[i%len(t.Keys)], `{"display_name":"x"}`)
			})
		})
		repeat(ctx, lists, time.Millisecond, func(ctx context.Context, i int) {
			n[i]++
			w.get(ctx, paths[i%len(paths)], t.Keys[(i+lists*n[i])%len(t.Keys)], nil)
		})
	}, nil
}

const (
	historyHours  = 125 // 1,500 readings of each device
	exportReaders = 12  // more than there are slots
	silentReaders = 16  // as many as there are slots in all
)

func readSlowly(t *target) (func(context.Context, *attacker), error) {
	path := "/v1/readings.csv?from=" + roomsensor.FormatTime(t.History.Add(-historyHours*time.Hour)) +
		"&to=" + roomsensor.FormatTime(t.History)
	return func(ctx context.Context, w *attacker) {
		var group sync.WaitGroup
		defer group.Wait()
		group.Go(func() {
			repeat(ctx, silentReaders, uploadPause, func(ctx context.Context, i int) {
				w.getSilently(ctx, path, t.Keys[i%len(t.Keys)])
			})
		})
		repeat(ctx, exportReaders, uploadPause, func(ctx context.Context, i int) {
			w.get(ctx, path, t.Keys[i%len(t.Keys)], func(body io.Reader) {
				var one [1]byte
				for {
					if _, err := body.Read(one[:]); err != nil || retry.Sleep(ctx, time.Second) != nil {
						return
					}
				}
			})
		})
	}, nil
}

// readMuch requests the pages that read the most readings for the fewest bytes, each of another kind, and sends more
// requests that wait for changes, and for each other, than the keys may. Each has a URL of 55 KB.
func readMuch(t *target) (func(context.Context, *attacker), error) {
	const pages, waiting = 64, 1000
	from, to := roomsensor.FormatTime(t.History.Add(-historyHours*time.Hour)), roomsensor.FormatTime(t.History)
	window := "from=" + from + "&to=" + to
	filter := "&metadata.x=" + strings.Repeat("y", 55_000)
	device := "/v1/devices/" + t.Devices[0].String()
	paths := []string{
		"/v1/coverage?limit=1000&" + window,
		"/v1/readings/changes?limit=1000&since=" + from,
		device + "/gaps?limit=1000&" + window,
		device + "/aggregates?interval=1h&limit=1000&" + window,
		"/v1/aggregates.csv?interval=1h&" + window,
	}
	return func(ctx context.Context, w *attacker) {
		var group sync.WaitGroup
		defer group.Wait()
		group.Go(func() {
			spread(ctx, waiting, t.Duration, func(ctx context.Context, i int) {
				w.get(ctx, "/v1/readings/changes?wait=30&since="+from+filter, t.Keys[i%len(t.Keys)], nil)
			})
		})
		repeat(ctx, pages, uploadPause, func(ctx context.Context, i int) {
			w.get(ctx, paths[i%len(paths)], t.Keys[i%len(t.Keys)], nil)
		})
	}, nil
}
