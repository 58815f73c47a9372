package fleet_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
)

// BenchmarkCountRequest measures requests that are counted, of one client and of 64, all with the same key and each with
// one of 1,000 keys.
func BenchmarkCountRequest(b *testing.B) {
	for _, clients := range []int{1, 64} {
		for _, keys := range []int{1, 1000} {
			b.Run(fmt.Sprintf("%d clients, %d keys", clients, keys), func(b *testing.B) {
				f := setup(b)
				var n atomic.Int64
				for b.Loop() {
					if n.Load()%int64(keys*roomsensor.RateLimit) == 0 { // All keys are at their limit.
						b.StopTimer()
						f.Exec(b, "UPDATE rate_windows SET hit_at = hit_at - INTERVAL '10 minutes'")
						f.Exec(b, "VACUUM ANALYZE rate_windows, rate_counters")
						b.StartTimer()
					}
					var requests sync.WaitGroup
					for range clients {
						requests.Go(func() { f.count(b, fmt.Sprintf("key %d", n.Add(1)%int64(keys))) })
					}
					requests.Wait()
				}
				b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(n.Load()), "µs/request")
			})
		}
	}
}

func (f *fixture) count(b *testing.B, keyID string) {
	b.Helper()
	if _, err := f.CountRequest(b.Context(), keyID); err != nil {
		b.Error(err)
	}
}

// BenchmarkCountRequestIdle measures how long 1,498 keys, each with 600 requests that left its window, wait for one
// request each that arrive together.
func BenchmarkCountRequestIdle(b *testing.B) {
	const keys = 1498
	f := setup(b)
	failed := 0.0
	for b.Loop() {
		b.StopTimer()
		f.Exec(b, "TRUNCATE rate_windows, rate_counters")
		f.Exec(b, "INSERT INTO rate_counters SELECT 'key ' || i, 600, 0 FROM generate_series(1, $1) i", keys)
		f.Exec(b, `INSERT INTO rate_windows SELECT key_id, slot, now() - INTERVAL '1 hour'
			FROM rate_counters, generate_series(0, 599) slot`)
		f.Exec(b, "VACUUM ANALYZE rate_windows, rate_counters")
		b.StartTimer()
		var requests sync.WaitGroup
		var errs atomic.Int64
		for i := range keys {
			requests.Go(func() {
				if _, err := f.CountRequest(b.Context(), fmt.Sprintf("key %d", i+1)); err != nil {
					errs.Add(1)
				}
			})
		}
		requests.Wait()
		failed += float64(errs.Load())
	}
	b.ReportMetric(failed/float64(b.N), "failed")
}

// BenchmarkCountRequestBurst measures how long a request waits while 20,000 requests of another key do.
func BenchmarkCountRequestBurst(b *testing.B) {
	const burst = 20_000
	f := setup(b)
	for b.Loop() {
		b.StopTimer()
		f.Exec(b, "TRUNCATE rate_windows, rate_counters")
		ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
		var requests, begun sync.WaitGroup
		begun.Add(burst)
		for range burst {
			requests.Go(func() {
				begun.Done()
				_, err := f.CountRequest(ctx, "burst")
				require.NoError(b, err)
			})
		}
		begun.Wait()
		b.StartTimer()
		f.count(b, "other")
		b.StopTimer()
		requests.Wait()
		cancel()
		b.StartTimer()
	}
}
