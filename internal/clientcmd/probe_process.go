package clientcmd

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"roomsensor/internal/config"
	"roomsensor/internal/process"
	"roomsensor/internal/retry"
)

// RunProbe runs a process that checks the service from outside until ctx ends. Its error is a *config.ValueError if the
// configuration is invalid.
func RunProbe(ctx context.Context, cfg config.Probe, o process.Options) error {
	if err := cfg.Validate(); err != nil {
		return err
	}
	return process.Run(ctx, o, func(ctx context.Context, p *process.Process) error {
		p.Log.Info().Str("version", p.Version).Object("config", &cfg).Msg("starting to probe")
		m := newProbeMetrics(p.Metrics)
		if err := p.StartOps(ctx, cfg.OpsAddr, &cfg); err != nil {
			return err
		}
		//nolint:contextcheck // It outlives the start.
		p.Background("the checks", func(ctx context.Context) error {
			retry.Every(ctx, time.Duration(cfg.Interval), func(ctx context.Context) {
				result, err := check(ctx, &cfg, p.Version)
				switch {
				case ctx.Err() != nil: // The process stops.
					return
				case err != nil:
					p.Log.Error().Err(err).Msg("the check failed")
				default:
					p.Log.Info().Msg("the check succeeded")
				}
				m.set(&result)
			})
			return nil
		})
		p.Serving(0)
		return nil
	})
}

// probeMetrics are those of the last check.
type probeMetrics struct {
	success              prometheus.Gauge
	seconds, certificate *prometheus.GaugeVec
}

func newProbeMetrics(registerer prometheus.Registerer) *probeMetrics {
	factory := promauto.With(registerer)
	return &probeMetrics{
		success: factory.NewGauge(prometheus.GaugeOpts{
			Name: "roomsensor_probe_success", Help: "1 while the last check succeeded.",
		}),
		seconds: factory.NewGaugeVec(prometheus.GaugeOpts{
			Name: "roomsensor_probe_duration_seconds",
			Help: "Durations of the last check by step: read (the newest readings), accepted (the upload), visible (until the " +
				"change feed has it). A step that was not reached has none.",
		}, []string{"step"}),
		certificate: factory.NewGaugeVec(prometheus.GaugeOpts{
			Name: "roomsensor_probe_certificate_expiry_timestamp_seconds",
			Help: "Unix time at which the first certificate of the service expires. Missing without TLS.",
		}, nil),
	}
}

// set replaces the values by those of a check.
func (m *probeMetrics) set(r *probeResult) {
	success := 0.0
	if r.OK {
		success = 1
	}
	m.success.Set(success)
	m.seconds.Reset()
	for step, seconds := range map[string]*float64{
		"read": r.ReadSeconds, "accepted": r.AcceptedSeconds, "visible": r.VisibleSeconds,
	} {
		if seconds != nil {
			m.seconds.WithLabelValues(step).Set(*seconds)
		}
	}
	if r.CertificateExpiresAt != nil {
		m.certificate.WithLabelValues().Set(float64(r.CertificateExpiresAt.Unix()))
	}
}
