package localdb

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
)

// starter starts a server in a data directory whose lock is held.
type starter struct {
	dir      *dataDir
	options  Options
	progress *progress
}

// way is one way to a server. Its reason says why it cannot be gone on this machine.
type way struct {
	advice string
	start  func(context.Context) (*state, error)
}

// start goes the ways in their order. Data that is there already is served the way it was made.
func (s starter) start(ctx context.Context) (*Server, error) {
	made, err := s.dir.load()
	if err != nil {
		return nil, err
	}
	if made != nil {
		st, err := s.again(ctx, made)
		return s.started(st, err)
	}
	return s.startBy(ctx, s.ways())
}

// startBy goes the ways in turn. Why the last one failed is in the error, so that it is not said before.
func (s starter) startBy(ctx context.Context, ways []way) (*Server, error) {
	reasons := []string{s.options.URLVariable + " is not set"}
	for i, w := range ways {
		st, err := w.start(ctx)
		if err == nil || ctx.Err() != nil {
			return s.started(st, err)
		}
		if i < len(ways)-1 {
			s.progress.say("%v; trying the next way", err)
		}
		reasons = append(reasons, err.Error())
	}
	return nil, s.failure(ways, reasons)
}

func (s starter) ways() []way {
	return []way{
		{"install PostgreSQL 15 or later with TimescaleDB 2.19 or later", s.startInstalled},
		{"start Docker, where the image " + image() + " is or can be pulled", s.startContainer},
		{
			"on Debian or Ubuntu: run this once as root, or install mmdebstrap, patchelf, debian-archive-keyring and tzdata",
			s.startCopy,
		},
	}
}

// again starts the server of data that is there.
func (s starter) again(ctx context.Context, made *state) (*state, error) {
	if made.Image != "" {
		st, err := s.runContainer(ctx, made)
		if err != nil {
			return nil, fmt.Errorf("the data of %s is in Docker, and is served from there: %w", s.dir.path, err)
		}
		return st, nil
	}
	in, err := s.installationOf(ctx, made)
	if err != nil {
		return nil, err
	}
	return s.startCluster(ctx, in, made)
}

func (s starter) started(st *state, err error) (*Server, error) {
	if err != nil {
		return nil, fmt.Errorf("starting TimescaleDB: %w", err)
	}
	s.progress.say("running on 127.0.0.1:%d (%s)", st.Port, st.How)
	return &Server{URL: st.url(), How: st.How, DataDir: s.dir.path, Started: true}, nil
}

// failure lists the four ways, each with what stood against it here.
func (s starter) failure(ways []way, reasons []string) error {
	advice := []string{"set " + s.options.URLVariable + " to a PostgreSQL that preloads TimescaleDB 2.19 or later"}
	for _, w := range ways {
		advice = append(advice, w.advice)
	}
	var b strings.Builder
	b.WriteString("no TimescaleDB could be found or started; any one of these helps:")
	for i := range advice {
		fmt.Fprintf(&b, "\n  %d. %s\n     (now: %s)", i+1, advice[i], reasons[i])
	}
	return errors.New(b.String())
}

// settings returns the parameters of the server: those every server needs, and above them the caller's.
func (s starter) settings() map[string]string {
	settings := map[string]string{
		"shared_preload_libraries":    "timescaledb",
		"timescaledb.telemetry_level": "off",
		// TimescaleDB's jobs beside PostgreSQL's own workers, which would else use up the 8 that there are.
		"max_worker_processes": "27",
		// A query locks every chunk that it looks at.
		"max_locks_per_transaction": "256",
	}
	maps.Copy(settings, s.options.Settings)
	return settings
}

// ForTests returns the settings of a server for tests. What it keeps may be lost in a crash of the machine.
func ForTests() map[string]string {
	return map[string]string{
		"fsync":            "off",
		"full_page_writes": "off",
		"max_connections":  "300",
		// The scheduler would sit in template databases, which then cannot be copied.
		"timescaledb.max_background_workers": "0",
		// Not UTC and not at a whole hour of it, so that a conversion that was forgotten shows.
		"timezone": "America/St_Johns",
	}
}
