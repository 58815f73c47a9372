package proctest

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// NATS is a NATS server process with JetStream. It syncs every message to disk before it acknowledges it.
type NATS struct {
	*Process
	URL string

	command Command
	monitor string
}

// StartNATS starts a server that keeps its streams in dir, and waits until it accepts connections.
func StartNATS(ctx context.Context, path, dir string, log io.Writer) (*NATS, error) {
	address, err := FreeAddress()
	if err != nil {
		return nil, err
	}
	monitor, err := FreeAddress()
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "nats.conf")
	config := fmt.Sprintf("listen: %q\nhttp: %q\njetstream {\n  store_dir: %q\n  sync_interval: always\n}\n",
		address, monitor, dir)
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		return nil, fmt.Errorf("writing the configuration of NATS: %w", err)
	}
	n := &NATS{URL: "nats://" + address, monitor: monitor}
	n.command = Command{Path: path, Args: []string{"-c", file}, Log: log}
	return n, n.Restart(ctx)
}

// Restart starts the server again after it was stopped or killed, on the same port and with the same streams.
func (n *NATS) Restart(ctx context.Context) (err error) {
	if n.Process, err = Start(n.command); err != nil {
		return err
	}
	return n.AwaitOK(ctx, "http://"+n.monitor+"/healthz")
}
