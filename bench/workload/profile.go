package workload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/pprof"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"roomsensor/bench/env"
)

// profile runs a side again and saves CPU and allocation profiles of the processes with the given ops addresses.
func (s *Suite) profile(ctx context.Context, name string, run Side, ops ...string) error {
	if s.Profile == "" {
		return nil
	}
	s.Logf("profiling %s", name)
	span := max(time.Second, s.Time)
	group, ctx := errgroup.WithContext(ctx)
	for i, address := range ops {
		for kind, page := range map[string]string{"cpu": "profile", "allocs": "allocs"} {
			url := fmt.Sprintf("http://%s/debug/pprof/%s?seconds=%d", address, page, int(span.Seconds()))
			file := fmt.Sprintf("%s.%d.%s.pprof", name, i, kind)
			group.Go(func() error { return s.fetch(ctx, url, file) })
		}
	}
	group.Go(func() error {
		for until := time.Now().Add(span); time.Now().Before(until); {
			if _, err := run(ctx); err != nil {
				return err
			}
		}
		return nil
	})
	return group.Wait() //nolint:wrapcheck // Wrapped by the functions.
}

// fetch saves the answer of an ops address.
func (s *Suite) fetch(ctx context.Context, url, file string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("profiling: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("profiling: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, text)
	}
	if err != nil {
		return fmt.Errorf("profiling: %w", err)
	}
	return s.saveProfile(file, text)
}

func (s *Suite) saveProfile(file string, text []byte) error {
	err := os.MkdirAll(s.Profile, 0o750)
	if err == nil {
		err = os.WriteFile(filepath.Join(s.Profile, file), text, 0o600)
	}
	if err != nil {
		return fmt.Errorf("saving a profile: %w", err)
	}
	return nil
}

// profileAPI profiles the API during a side, and saves the plans of its statements. The plans are of another process,
// because logging them takes time.
func (s *Suite) profileAPI(ctx context.Context, name string, run Side) error {
	if s.Profile == "" {
		return nil
	}
	if s.Layout != "" && !strings.HasPrefix(name, "w4") {
		name += "-" + s.Layout
	}
	if err := s.profile(ctx, name, run, s.api.Ops); err != nil {
		return err
	}
	return s.plans(name, s.Database, func(address string) error {
		explained, err := s.StartOn(ctx, address, "explained", nil, "api")
		if err != nil {
			return err
		}
		plain := s.api
		s.api = explained
		_, err = run(ctx)
		s.api = plain
		if err != nil {
			return err
		}
		return env.Stop(explained)
	})
}

// plans saves the plans of the statements that run executes with the given database URL.
func (s *Suite) plans(name, database string, run func(address string) error) error {
	address, err := env.ExplainURL(database)
	if err != nil {
		return err
	}
	since, err := s.LogSize()
	if err != nil {
		return err
	}
	if err := run(address); err != nil {
		return err
	}
	text, err := s.Plans(since)
	if err != nil {
		return err
	}
	return s.saveProfile(name+".plans.txt", []byte(text))
}

// withProfiler serves the profiler of this process, in which W5 runs, while a function runs.
func withProfiler(ctx context.Context, do func(address string) error) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listening for the profiler: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	err = do(listener.Addr().String())
	err = errors.Join(err, server.Close())
	if failed := <-served; !errors.Is(failed, http.ErrServerClosed) {
		err = errors.Join(err, failed)
	}
	return err
}
