package procs

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Free ports are looked for below those that systems give to connections: there one could be given to the very
// connection that is looking for a server which was killed, and the server could not come back.
const (
	leastPort = 15_000
	mostPort  = 32_000
	tries     = 100
)

// reserved holds the UDP port of each address that was given out, until this process ends: so another one that asks
// meanwhile, such as the tests of another package, gets another address, also before something listens there.
var reserved struct { //nolint:gochecknoglobals // The ports are the machine's.
	mu    sync.Mutex
	ports []net.PacketConn
}

// FreeAddress is an address of this machine on which nothing listens, and which nobody else was given. What does not
// ask here may take it before it is used; a process then says so and ends.
func FreeAddress() (address string, err error) {
	for range tries {
		port := leastPort + rand.IntN(mostPort-leastPort) //nolint:gosec // Any that is free will do.
		address = fmt.Sprintf("127.0.0.1:%d", port)
		if err = reserve(address); err == nil {
			return address, nil
		}
	}
	return "", fmt.Errorf("finding a free port: %w", err)
}

func reserve(address string) error {
	udp, err := net.ListenPacket("udp", address) //nolint:noctx // It does not wait.
	if err != nil {
		return fmt.Errorf("reserving a port: %w", err)
	}
	tcp, err := net.Listen("tcp", address) //nolint:noctx // Likewise.
	if err != nil {
		_ = udp.Close() // It sent nothing.
		return fmt.Errorf("trying a port: %w", err)
	}
	_ = tcp.Close() // It took no connections.
	reserved.mu.Lock()
	defer reserved.mu.Unlock()
	reserved.ports = append(reserved.ports, udp)
	return nil
}

const pollEvery = 20 * time.Millisecond

// AwaitReady waits until a process of the program, by its ops address, is ready.
func (p *Process) AwaitReady(ctx context.Context, opsAddr string) error {
	return p.AwaitOK(ctx, ReadyURL(opsAddr))
}

// ReadyURL answers with 200 while a process of the program, by its ops address, is ready.
func ReadyURL(opsAddr string) string { return "http://" + opsAddr + "/readyz" }

// AwaitOK waits until the process answers at an address with 200.
func (p *Process) AwaitOK(ctx context.Context, url string) error {
	client := &http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for !Answers(ctx, client, url) {
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for a process to be ready: %w", ctx.Err())
		case <-p.done:
			return fmt.Errorf("a process ended before it was ready: %w", p.err)
		case <-ticker.C:
		}
	}
	return nil
}

// Answers tells whether what a URL names is there and answers with 200.
func Answers(ctx context.Context, client *http.Client, url string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	response, err := client.Do(request)
	if err != nil {
		return false
	}
	_ = response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// NATS is a NATS server in a process of its own, with JetStream that syncs every message before it acknowledges it.
type NATS struct {
	*Process
	URL string

	command Command
	monitor string
}

// StartNATS starts a server on a directory, where its streams stay, and waits until it takes connections.
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
		return nil, fmt.Errorf("configuring NATS: %w", err)
	}
	n := &NATS{URL: "nats://" + address, monitor: monitor}
	n.command = Command{Path: path, Args: []string{"-c", file}, Log: log}
	return n, n.Restart(ctx)
}

// Restart starts the server, again after it was stopped or killed, on the same port and the same streams.
func (n *NATS) Restart(ctx context.Context) (err error) {
	if n.Process, err = Start(n.command); err != nil {
		return err
	}
	return n.AwaitOK(ctx, "http://"+n.monitor+"/healthz")
}
