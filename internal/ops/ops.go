// Package ops is the listener that operators and their machines look at a
// process through: health, readiness, metrics and profiles. It listens from
// the first moment of a process and never on a public address.
package ops

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"os"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"roomsensor/internal/config"
	"roomsensor/internal/problem"
)

const (
	// readHeaderTimeout keeps a silent client from holding a connection.
	readHeaderTimeout = 5 * time.Second
	// idleTimeout is longer than the pause between two scrapes.
	idleTimeout = 2 * time.Minute
)

// Server answers on the ops address.
type Server struct {
	health *Health
	http   *http.Server
}

// New makes a server. What a process measures is in the registry.
func New(health *Health, metrics prometheus.Gatherer) *Server {
	s := &Server{health: health}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", live)
	mux.HandleFunc("GET /readyz", s.ready)
	mux.Handle("GET /metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", commandLine)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("POST /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	s.http = &http.Server{
		Handler: problem.WithRequestID(mux), ReadHeaderTimeout: readHeaderTimeout, IdleTimeout: idleTimeout,
	}
	return s
}

// Serve answers until Shutdown; being shut down is no error.
func (s *Server) Serve(l net.Listener) error {
	if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving operations: %w", err)
	}
	return nil
}

// Shutdown waits for answers that are under way. A profile that takes longer
// than ctx lasts is cut off.
func (s *Server) Shutdown(ctx context.Context) error {
	if err := s.http.Shutdown(ctx); err != nil {
		return errors.Join(fmt.Errorf("closing the operations listener: %w", err), s.http.Close())
	}
	return nil
}

// live says that the process runs, whatever it can do: a restart helps against
// nothing that /readyz reports.
func live(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, map[string]string{"status": "alive"})
}

func (s *Server) ready(w http.ResponseWriter, _ *http.Request) {
	missing := s.health.Missing()
	if len(missing) > 0 {
		writeJSON(w, http.StatusServiceUnavailable, readiness{"not_ready", missing})
		return
	}
	writeJSON(w, http.StatusOK, readiness{"ready", []Missing{}})
}

// commandLine is pprof.Cmdline without the passwords that flags may hold.
func commandLine(w http.ResponseWriter, _ *http.Request) {
	args := make([]string, len(os.Args))
	for i, arg := range os.Args {
		args[i] = config.Mask(arg)
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write([]byte(strings.Join(args, "\x00"))) // A client that went away needs no answer.
}

// readiness is the body of /readyz.
type readiness struct {
	Status  string    `json:"status"`
	Missing []Missing `json:"missing"`
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) //nolint:errchkjson // A client that went away needs no answer.
}
