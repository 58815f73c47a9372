package chaos

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"roomsensor/internal/procs"
)

// queueServer is nats-server.
type queueServer struct {
	*program
	url string
}

// startQueue starts nats-server, which listens on one address however often it is killed.
func (w *world) startQueue(ctx context.Context) error {
	log, err := w.log(natsServer)
	if err != nil {
		return err
	}
	streams := filepath.Join(w.dir, "streams")
	if err := os.MkdirAll(streams, 0o750); err != nil {
		return fmt.Errorf("making a place for the streams: %w", err)
	}
	server, err := procs.StartNATS(ctx, w.programs.NATSServer, streams, log)
	if err != nil {
		return err
	}
	w.queue = &queueServer{program: adopt(natsServer, server, w.died), url: server.URL}
	w.push(w.queue.stop)
	return nil
}

// adopt makes a program of a server that runs.
func adopt(name string, server *procs.NATS, died func(string)) *program {
	p := &program{name: name, died: died, process: server.Process}
	p.launch = func(ctx context.Context) (*procs.Process, error) {
		err := server.Restart(ctx)
		return server.Process, err
	}
	p.group.Go(func() { p.watch(server.Process) })
	return p
}
