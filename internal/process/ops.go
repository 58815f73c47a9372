package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/http/pprof"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/rs/zerolog"

	"roomsensor/internal/config"
	"roomsensor/internal/httpedge"
)

const (
	// opsIdleTimeout is longer than the usual interval between two scrapes of /metrics.
	opsIdleTimeout = 2 * time.Minute
	// healthcheckTimeout bounds one request of Healthcheck.
	healthcheckTimeout = 3 * time.Second
	// maxReadyzBytes is far above the size of a body of /readyz.
	maxReadyzBytes = 1 << 16
)

// StartOps opens the ops listener and starts the probes of the dependencies. It is the first thing that a process opens
// and the last that it closes. The ops address must not be public. The settings have no secrets.
func (p *Process) StartOps(ctx context.Context, address string, settings zerolog.LogObjectMarshaler) error {
	listener, err := p.Bind(ctx, "ops", "ops-addr", address)
	if err != nil {
		return err
	}
	server := NewOpsServer(p.Health, p.Metrics, p.LogLevel)
	server.mux.HandleFunc("GET /settings", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		log := zerolog.New(w)
		log.Log().Str("version", p.Version).Object("config", settings).Send()
	})
	p.OnClose("ops", server.Shutdown)
	p.Go("ops", func(context.Context) error { return server.Serve(listener) })
	p.Go("health", func(ctx context.Context) error {
		p.Health.Run(ctx)
		return nil
	})
	return nil
}

// OpsServer serves health checks, metrics and profiles.
type OpsServer struct {
	mux    *http.ServeMux
	health *Health
	http   *http.Server
}

// NewOpsServer returns a server for the ops address. Without a level, it cannot be changed.
func NewOpsServer(health *Health, metrics prometheus.Gatherer, level *LogLevel) *OpsServer {
	mux := http.NewServeMux()
	s := &OpsServer{mux: mux, health: health}
	mux.HandleFunc("GET /livez", live)
	mux.HandleFunc("GET /readyz", s.ready)
	mux.Handle("GET /metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{}))
	if level != nil {
		mux.HandleFunc("GET /log-level", level.serve(health.log))
		mux.HandleFunc("PUT /log-level", level.serve(health.log))
	}
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", commandLine)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("POST /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	s.http = httpedge.NewServer(httpedge.WithRequestID(mux), health.log)
	s.http.IdleTimeout = opsIdleTimeout
	return s
}

// ServeHTTP answers a request without a listener.
func (s *OpsServer) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.http.Handler.ServeHTTP(w, r) }

// Serve answers requests until Shutdown.
func (s *OpsServer) Serve(l net.Listener) error {
	if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving the ops listener: %w", err)
	}
	return nil
}

// Shutdown waits for requests in flight until ctx ends, and then closes their connections.
func (s *OpsServer) Shutdown(ctx context.Context) error {
	if err := s.http.Shutdown(ctx); err != nil {
		return errors.Join(fmt.Errorf("closing the ops listener: %w", err), s.http.Close())
	}
	return nil
}

// live answers 200 while the process runs. It ignores dependencies, because a restart does not bring them back.
func live(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, map[string]string{"status": "alive"})
}

func (s *OpsServer) ready(w http.ResponseWriter, _ *http.Request) {
	missing := s.health.Missing()
	if len(missing) > 0 {
		writeJSON(w, http.StatusServiceUnavailable, readiness{"not_ready", missing, s.health.Needed()})
		return
	}
	writeJSON(w, http.StatusOK, readiness{"ready", []Missing{}, s.health.Needed()})
}

// commandLine is pprof.Cmdline with the passwords in flags masked.
func commandLine(w http.ResponseWriter, _ *http.Request) {
	args := make([]string, len(os.Args))
	for i, arg := range os.Args {
		args[i] = config.Mask(arg)
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write([]byte(strings.Join(args, "\x00"))) // The client may be gone.
}

// readiness is the body of /readyz.
type readiness struct {
	Status  string    `json:"status"`
	Missing []Missing `json:"missing"`
	Checked []string  `json:"checked"` // the dependencies of the process
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) //nolint:errchkjson // The client may be gone.
}

// Healthcheck requests /readyz of a process on this machine and returns the body. Its error is for operators if the
// process cannot be reached or is not ready.
func Healthcheck(ctx context.Context, cfg config.Ops) (json.RawMessage, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, healthcheckTimeout)
	defer cancel()
	var connected atomic.Bool
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { connected.Store(true) },
	})
	request, err := http.NewRequestWithContext(traced, http.MethodGet, "http://"+cfg.Local()+"/readyz", nil)
	if err != nil {
		return nil, fmt.Errorf("requesting readiness: %w", err)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	response, err := transport.RoundTrip(request)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return nil, Refusef("Nothing listens on %s. Check that the process runs "+
			"and that --ops-addr (OPS_ADDR) is its ops address: %v", cfg.OpsAddr, err)
	case connected.Load() && errors.Is(err, context.DeadlineExceeded):
		return nil, Refusef("A process listens on %s, but did not answer within %s. See with \"ps -o pid,stat,time,args\" "+
			"whether it is stopped (T), waits for a disk (D) or lacks processor time, and restart it if it stays so: %v",
			cfg.OpsAddr, healthcheckTimeout, err)
	case err != nil:
		return nil, Refusef("Nothing answers on %s. Check that the process runs "+
			"and that --ops-addr (OPS_ADDR) is its ops address: %v", cfg.OpsAddr, err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxReadyzBytes))
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading readiness: %w", err)
	case response.StatusCode != http.StatusOK:
		return nil, Refusef("The process is not ready: %s", body)
	}
	return body, nil
}
