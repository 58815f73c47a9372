package api_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"syscall"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/api"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/tracing"
	"roomsensor/test/otlptest"
)

// unlimited is the store without the rate limit.
type unlimited struct{ api.Backend }

func (unlimited) CountRequest(context.Context, string) (roomsensor.RateVerdict, error) {
	return roomsensor.RateVerdict{Allowed: true}, nil
}

// BenchmarkTracing measures the CPU time per request of a device, which runs one statement, without tracing and with
// shares of recorded requests. It includes the CPU time of the client and of the collector, which decodes the spans.
func BenchmarkTracing(b *testing.B) {
	f := setup(b)
	for _, share := range []float64{-1, 0, 0.01, 1} {
		name, cfg := "off", tracing.Config{Metrics: prometheus.NewRegistry(), Ratio: share}
		if share >= 0 {
			name, cfg.URL = fmt.Sprintf("%g", share), otlptest.New(b).URL+"/v1/traces"
		}
		b.Run(name, func(b *testing.B) {
			tracer, err := tracing.Start(b.Context(), cfg)
			require.NoError(b, err)
			r := f.serve(b, unlimited{f.store}, func(c *api.Config) { c.Tracer = tracer })
			began := cpuTime(b)
			for b.Loop() {
				request, err := http.NewRequestWithContext(b.Context(), http.MethodGet, r.server.URL+"/v1"+devicePath, nil)
				require.NoError(b, err)
				request.Header.Set("Authorization", "Bearer "+f.readKey)
				response, err := r.server.Client().Do(request)
				require.NoError(b, err)
				require.Equal(b, http.StatusOK, response.StatusCode)
				_, err = io.Copy(io.Discard, response.Body)
				require.NoError(b, err)
				require.NoError(b, response.Body.Close())
			}
			require.NoError(b, tracer.Stop(b.Context()))
			b.ReportMetric(float64(cpuTime(b)-began)/float64(b.N)/1000, "µs-CPU/op")
		})
	}
}

// cpuTime returns the CPU time of the process in ns.
func cpuTime(b *testing.B) int64 {
	b.Helper()
	var used syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return used.Utime.Nano() + used.Stime.Nano()
}
