package fleet_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

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
