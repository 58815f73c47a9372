package chaos

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"roomsensor/internal/procs"
)

// service is a process of roomsensor that serves, with lines of its own to database and queue.
type service struct {
	*program
	lines   map[string]*line
	address string // where it listens, if it does
	ops     string
}

// api is the name of the API's process, to which nothing happens.
const api = "api"

// startServices starts the workers, the receiver, and the API.
func (w *world) startServices(ctx context.Context) error {
	for i := range w.options.Workers {
		if err := w.startService(ctx, workerName(i), "ingest", "--no-receiver"); err != nil {
			return err
		}
	}
	if err := w.startService(ctx, receiver, "ingest", "--no-worker"); err != nil {
		return err
	}
	if err := w.startService(ctx, api, "api"); err != nil {
		return err
	}
	w.trial.Receiver, w.trial.API = w.services[receiver].address, w.services[api].address
	for _, s := range w.services {
		if err := s.awaitReady(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) startService(ctx context.Context, name string, args ...string) (err error) {
	s := &service{}
	if s.address, err = procs.FreeAddress(); err != nil {
		return err
	}
	if s.ops, err = procs.FreeAddress(); err != nil {
		return err
	}
	if s.lines, err = w.openLines(name); err != nil {
		return err
	}
	log, err := w.log(name)
	if err != nil {
		return err
	}
	s.program = &program{name: name, died: w.died, launch: func(context.Context) (*procs.Process, error) {
		return procs.Start(procs.Command{Path: w.programs.Roomsensor, Args: args, Env: w.environment(s), Log: log})
	}}
	w.push(s.stop)
	w.services[name] = s
	return s.start(ctx)
}

func (w *world) environment(s *service) []string {
	env := []string{
		"OPS_ADDR=" + s.ops, "API_ADDR=" + s.address, "INGEST_ADDR=" + s.address, "STREAM_MAX_BYTES=2GiB",
		"DATABASE_URL=" + s.lines[toDatabase].url, "NATS_URL=" + s.lines[toQueue].url,
	}
	if w.options.AckEarly {
		env = append(env, "ROOMSENSOR_CHAOS_ACK_EARLY=true")
	}
	return env
}

func (w *world) openLines(name string) (map[string]*line, error) {
	open := map[string]*line{}
	for to, url := range map[string]string{toDatabase: w.database.address(), toQueue: w.queue.url} {
		l, err := newLine(name+" to "+to, url)
		if err != nil {
			return nil, err
		}
		w.push(func() error { l.close(); return nil })
		open[to] = l
	}
	return open, nil
}

// log opens the log of a process.
func (w *world) log(name string) (io.Writer, error) {
	file, err := os.Create(filepath.Join(w.dir, name+".log")) //nolint:gosec // The directory is that of the trial.
	if err != nil {
		return nil, fmt.Errorf("making a log: %w", err)
	}
	w.push(file.Close)
	return file, nil
}

// startPatience is for a process to become ready on a busy machine.
const startPatience = time.Minute

// awaitReady waits until the process can serve.
func (s *service) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	s.mu.Lock()
	process := s.process
	s.mu.Unlock()
	if err := process.AwaitReady(ctx, s.ops); err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	return nil
}
