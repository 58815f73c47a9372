package workload

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"roomsensor/bench/ground"
)

// profile runs a side once more, under the profiler of the processes behind these ops addresses, and keeps what they
// say of processor and allocations under a name.
func (s *suite) profile(ctx context.Context, name string, run side, ops ...string) error {
	if s.Profile == "" {
		return nil
	}
	s.Say("profiling %s", name)
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
	return group.Wait() //nolint:wrapcheck // Wrapped above.
}

// fetch keeps what an ops address answers.
func (s *suite) fetch(ctx context.Context, url, file string) error {
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
	return s.keep(file, text)
}

func (s *suite) keep(file string, text []byte) error {
	err := os.MkdirAll(s.Profile, 0o750)
	if err == nil {
		err = os.WriteFile(filepath.Join(s.Profile, file), text, 0o600)
	}
	if err != nil {
		return fmt.Errorf("keeping a profile: %w", err)
	}
	return nil
}

// profileAPI profiles the API under a side, and keeps the plans of what it asks the database. For the plans it is
// another process, as writing them down takes time.
func (s *suite) profileAPI(ctx context.Context, name string, run side) error {
	if s.Profile == "" {
		return nil
	}
	if s.layout != "" && !strings.HasPrefix(name, "w4") {
		name += "-" + s.layout
	}
	if err := s.profile(ctx, name, run, s.api.Ops); err != nil {
		return err
	}
	return s.plans(name, s.Database, func(address string) error {
		explained, err := s.ServeOn(ctx, address, "explained", nil, "api")
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
		return explained.Stop()
	})
}

// plans keeps the plans of what runs on connections to another address of a database.
func (s *suite) plans(name, database string, run func(address string) error) error {
	address, err := ground.Explained(database)
	if err != nil {
		return err
	}
	since, err := s.Logged()
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
	return s.keep(name+".plans.txt", []byte(text))
}
