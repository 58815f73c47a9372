package process

import (
	"context"

	"roomsensor/internal/config"
	"roomsensor/internal/tracing"
)

// StartTracing starts the export of traces, which ends with the process. It returns nil without a collector. service
// names the process in traces. Call it before the parts that make spans are started, so that they stop first and their
// last spans are exported.
func (p *Process) StartTracing(ctx context.Context, cfg config.Tracing, service string) (*tracing.Tracer, error) {
	ratio, trustParent := cfg.Ratio()
	authorities, err := cfg.TLS()
	if err != nil {
		return nil, err
	}
	tracer, err := tracing.Start(ctx, tracing.Config{
		URL: cfg.TracesURL(), Headers: cfg.OTLPHeaders.ByName, TLS: authorities,
		Ratio: ratio, TrustParent: trustParent,
		Service: service, Version: p.Version, Log: p.Log, Metrics: p.Metrics,
	})
	if err != nil {
		return nil, err
	}
	if tracer != nil {
		p.OnClose("tracing", tracer.Stop)
	}
	return tracer, nil
}
