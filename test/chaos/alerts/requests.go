package alerts

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"roomsensor/internal/dev/postgres"
	"roomsensor/internal/retry"
	"roomsensor/internal/roomsensor"
	"roomsensor/test/proctest"
)

// startOldVersion builds the API with another version and starts it beside the others.
func startOldVersion(ctx context.Context, e *env) error {
	path, err := proctest.Build(ctx, filepath.Join(e.Dir, "old"), proctest.Roomsensor, "-tags=alerts",
		"-ldflags=-s -w -X main.version=v0.0.1")
	if err != nil {
		return err
	}
	p, err := e.newProcess("old api", "api", e.nats.URL, []string{"api"})
	if err != nil {
		return err
	}
	p.command.Path = path
	e.old = p
	e.OnClose(func(context.Context) error { return p.stop() })
	return errors.Join(p.start(ctx), e.prometheus.SetTargets(append(slices.Clone(e.targets), p.ops)))
}

// stopOldVersion does nothing if the process could not be started.
func stopOldVersion(_ context.Context, e *env) error {
	if e.old == nil {
		return nil
	}
	return errors.Join(e.prometheus.SetTargets(e.targets), e.old.stop())
}

// lockDevices takes a lock that every request for devices waits for, and holds it until the server ends its connection.
func lockDevices(ctx context.Context, e *env) error {
	conn, err := pgx.Connect(ctx, e.server)
	if err != nil {
		return fmt.Errorf("locking a table: %w", err)
	}
	e.OnClose(func(ctx context.Context) error { _ = conn.Close(ctx); return nil }) // The server has ended it.
	if _, err := conn.Exec(ctx, "BEGIN; LOCK TABLE devices IN ACCESS EXCLUSIVE MODE"); err != nil {
		return fmt.Errorf("locking a table: %w", err)
	}
	return nil
}

// requestMuch keeps more requests of several teams in progress than the pool of the API has connections.
func requestMuch(ctx context.Context, e *env) error {
	keys := slices.Clone(e.team.keys)
	for _, t := range e.others {
		keys = append(keys, t.keys...)
	}
	var group sync.WaitGroup
	defer group.Wait()
	for _, key := range keys {
		group.Go(func() {
			for ctx.Err() == nil {
				e.load.list(ctx, key)
			}
		})
	}
	return nil
}

// terminateOldest ends the connection with the oldest transaction, which the statement of the runbook lists first.
func terminateOldest(ctx context.Context, e *env) error {
	return e.service.Query(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		rows, err := conn.Query(ctx, waitingStatements)
		if err != nil {
			return fmt.Errorf("finding the oldest transaction: %w", err)
		}
		pid := 0
		if rows.Next() {
			err = rows.Scan(&pid, nil, nil, nil, nil)
		}
		rows.Close()
		if err := errors.Join(err, rows.Err()); err != nil {
			return fmt.Errorf("finding the oldest transaction: %w", err)
		}
		terminate := fmt.Sprintf("SELECT pg_terminate_backend(%d)", pid)
		e.commands = append(e.commands, terminate)
		_, err = conn.Exec(ctx, terminate)
		if err != nil {
			return fmt.Errorf("ending the oldest transaction: %w", err)
		}
		return nil
	})
}

const (
	// stall is longer than the threshold of the alerts, 2.5 seconds, and shorter than the timeouts of the service.
	stall = 2800 * time.Millisecond
	// respite is the time between two stalls.
	respite = 400 * time.Millisecond
)

// stallDatabase suspends all processes of PostgreSQL for a while.
func stallDatabase(ctx context.Context, e *env) error {
	postmaster, container, err := postgres.Processes(e.database.DataDir)
	if err != nil {
		return err
	}
	if container != "" {
		return errors.New("the database runs in a container, whose processes cannot be suspended")
	}
	if err := signalAll([]int{postmaster}, syscall.SIGSTOP); err != nil { // It then starts no process.
		return err
	}
	pids := append([]int{postmaster}, proctest.Children(postmaster)...)
	err = signalAll(pids, syscall.SIGSTOP)
	_ = retry.Sleep(ctx, stall) // The processes continue in any case.
	if err := errors.Join(err, signalAll(pids, syscall.SIGCONT)); err != nil {
		return err
	}
	return sleep(ctx, respite)
}

func signalAll(pids []int, s syscall.Signal) error {
	for _, pid := range pids {
		if err := syscall.Kill(pid, s); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("sending %s to process %d: %w", s, pid, err)
		}
	}
	return nil
}

// slowBody is a body that arrives in pieces, one per second.
type slowBody struct {
	ctx   context.Context //nolint:containedctx // A reader has no other way to end.
	rest  []byte
	first int // bytes that arrive at once
	piece int
}

func (b *slowBody) Read(p []byte) (int, error) {
	if len(b.rest) == 0 {
		return 0, io.EOF
	}
	size := b.piece
	if b.first > 0 {
		size = b.first
	} else if err := retry.Sleep(b.ctx, time.Second); err != nil {
		return 0, io.ErrUnexpectedEOF
	}
	n := copy(p, b.rest[:min(size, len(b.rest))])
	b.rest, b.first = b.rest[n:], max(0, b.first-n)
	return n, nil
}

// uploadSlowly sends many uploads at the same time that arrive within 12 seconds each.
func uploadSlowly(ctx context.Context, e *env) error {
	const senders, seconds, piece = 40, 12, 6 << 10
	body := padded(e.team.devices[0].HardwareID, e.load.from.Add(-time.Hour), seconds*piece)
	var group sync.WaitGroup
	defer group.Wait()
	for range senders {
		group.Go(func() { e.load.post(ctx, e.team.credentials[0], &slowBody{ctx, body, 0, piece}) })
	}
	return nil
}

// uploadLarge sends bodies of 3.5 MiB with two requests of each credential, which end slowly.
func uploadLarge(ctx context.Context, e *env) error {
	const lines, line, each, piece = 4, 900 << 10, 2, 8 << 10
	body := bytes.Repeat(padded("dev:1", e.load.from, line), lines)
	client := &http.Client{Timeout: time.Minute, Transport: &http.Transport{}}
	var group sync.WaitGroup
	defer client.CloseIdleConnections()
	defer group.Wait()
	for _, t := range e.others {
		for _, credential := range t.credentials {
			for range each {
				group.Go(func() {
					slow := &slowBody{ctx, body, len(body) - line/2, piece}
					e.load.post(ctx, credential, slow)
				})
			}
		}
	}
	return nil
}

// readSlowly reads an export at 16 KiB/s.
func readSlowly(ctx context.Context, e *env) error {
	const chunk, receiveBuffer = 16 << 10, 32 << 10
	dialer := &net.Dialer{}
	client := &http.Client{Transport: &http.Transport{
		DisableCompression: true,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dialer.DialContext(ctx, network, address)
			if tcp, ok := conn.(*net.TCPConn); ok {
				_ = tcp.SetReadBuffer(receiveBuffer) // A larger one would take the export sooner.
			}
			return conn, err //nolint:wrapcheck // The transport wraps it.
		},
	}}
	defer client.CloseIdleConnections()
	to := e.load.from.Add(-24 * time.Hour)
	url := e.processes[apiName].url() + "/v1/readings.csv?from=" + roomsensor.FormatTime(to.AddDate(0, 0, -historyDays)) +
		"&to=" + roomsensor.FormatTime(to)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("requesting an export: %w", err)
	}
	request.Header.Set("Authorization", "Bearer "+e.team.keys[0])
	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("requesting an export: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("requesting an export: status %d", response.StatusCode)
	}
	for ctx.Err() == nil {
		if _, err := io.CopyN(io.Discard, response.Body, chunk); err != nil {
			return fmt.Errorf("reading an export: %w", err)
		}
		_ = retry.Sleep(ctx, time.Second) // The loop checks ctx.
	}
	return nil
}
