package abuse

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/retry"
)

// Tally counts the answers that an attacker got, by status or error.
type Tally map[string]int

// target is what an attacker knows. The trial passes it as one line of JSON.
type target struct {
	API         string        `json:"api"`
	Receiver    string        `json:"receiver"`
	Dashboard   string        `json:"dashboard"`
	Team        uuid.UUID     `json:"team"`
	People      []string      `json:"people"` // email addresses
	Keys        []string      `json:"keys"`
	Credentials []string      `json:"credentials"`
	Devices     []uuid.UUID   `json:"devices"`
	Units       []string      `json:"units"`   // hardware ids
	History     time.Time     `json:"history"` // end of the readings of the trial
	Duration    time.Duration `json:"duration_ns"`
}

// attackerProcess is an attacker that has built its load and waits.
type attackerProcess struct {
	cmd    *exec.Cmd
	input  io.WriteCloser
	output *bufio.Reader
}

// startAttacker starts the process of an attack and waits until it has built its load.
func (e *env) startAttacker(ctx context.Context, a *attack) (p *attackerProcess, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this program: %w", err)
	}
	log, err := e.LogFile("attacker")
	if err != nil {
		return nil, err
	}
	by := e.attackers[a.name]
	var ids []uuid.UUID
	var units []string
	for i := range by.devices {
		ids, units = append(ids, by.devices[i].ID), append(units, by.devices[i].HardwareID)
	}
	known, err := json.Marshal(target{
		API: e.api.URL(), Receiver: e.receiver.URL(), Dashboard: e.dashboard.URL(), Team: by.id, People: by.people,
		Keys: by.keys, Credentials: by.credentials, Devices: ids,
		Units: units, History: e.history, Duration: e.options.Attack,
	})
	if err != nil {
		return nil, fmt.Errorf("describing the target: %w", err)
	}
	// An attacker has a machine of its own; a lower priority comes closest to that.
	cmd := exec.CommandContext(ctx, "nice", "-n", "10", self, "attacker", a.name) //nolint:gosec // It is this program.
	cmd.Stderr = log
	p = &attackerProcess{cmd: cmd}
	if p.input, err = cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("starting an attacker: %w", err)
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("starting an attacker: %w", err)
	}
	p.output = bufio.NewReader(output)
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting an attacker: %w", err)
	}
	_, err = p.input.Write(append(known, '\n'))
	if err == nil {
		_, err = p.output.ReadString('\n') // It is ready.
	}
	if err != nil {
		_ = p.input.Close() // It ends the attacker.
		return nil, errors.Join(fmt.Errorf("waiting for an attacker: %w", err), cmd.Wait())
	}
	return p, nil
}

// attack attacks for the time of the options, or longer if the attack needs that. It returns the answers that the
// attacker got.
func (p *attackerProcess) attack(ctx context.Context, a *attack, e *env) (t Tally, err error) {
	_, err = p.input.Write([]byte("go\n"))
	if err == nil && a.strike != nil {
		err = a.strike(ctx, e)
	} else if err == nil {
		err = retry.Sleep(ctx, max(a.atLeast, e.options.Attack))
	}
	if err == nil && a.during != nil {
		err = a.during(ctx, e)
	}
	_ = p.input.Close() // It ends the attacker.
	err = errors.Join(err, json.NewDecoder(p.output).Decode(&t), p.cmd.Wait())
	if err != nil {
		return nil, fmt.Errorf("attacking: %w", err)
	}
	return t, nil
}

// Attack is the process of an attacker. It reads the target from the first line of in, and then begins with the second
// line. It ends with in, and writes the answers that it got to out.
func Attack(ctx context.Context, name string, in io.Reader, out io.Writer) error {
	a := find(name)
	if a == nil {
		return fmt.Errorf("there is no attack %q", name)
	}
	input := bufio.NewReader(in)
	line, err := input.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("reading the target: %w", err)
	}
	w := newAttacker()
	if err := json.Unmarshal(line, &w.target); err != nil {
		return fmt.Errorf("reading the target: %w", err)
	}
	load, err := a.load(&w.target)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(out, "ready"); err != nil {
		return fmt.Errorf("reporting that the attacker is ready: %w", err)
	}
	if _, err := input.ReadBytes('\n'); err != nil {
		return fmt.Errorf("waiting for the start of the attack: %w", err)
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, input) // It ends when the trial closes the pipe, or ends.
		stop()
	}()
	load(ctx, w)
	w.client.CloseIdleConnections()
	if err := json.NewEncoder(out).Encode(w.counts()); err != nil {
		return fmt.Errorf("reporting the answers: %w", err)
	}
	return nil
}

// attacker is the client of an attacker.
type attacker struct {
	target target
	client *http.Client

	mu    sync.Mutex
	tally Tally
}

// maxConnections bounds the connections of an attacker, which must fit the file descriptors of the processes.
const maxConnections = 2000

func newAttacker() *attacker {
	return &attacker{tally: Tally{}, client: &http.Client{Transport: &http.Transport{
		MaxConnsPerHost: maxConnections, MaxIdleConnsPerHost: maxConnections, DisableCompression: true,
		DialContext: dialSlowly,
	}}}
}

// dialSlowly opens a connection with a small receive buffer, so that a client that does not read blocks the sender.
func dialSlowly(ctx context.Context, network, address string) (net.Conn, error) {
	const buffer = 16 << 10
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetReadBuffer(buffer) // The default is only less hostile.
	}
	return conn, err //nolint:wrapcheck // The client wraps it.
}

func (w *attacker) counts() Tally {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.tally)
}

func (w *attacker) count(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tally[what]++
}

// send sends a request with a key. It passes a body with status 200 to read, or discards it if read is nil.
func (w *attacker) send(ctx context.Context, request *http.Request, key string, read func(io.Reader)) {
	request.Header.Set("Authorization", "Bearer "+key)
	response, err := w.client.Do(request)
	if err != nil {
		if ctx.Err() == nil {
			w.count("error")
		}
		return
	}
	defer func() { _ = response.Body.Close() }()
	w.count(strconv.Itoa(response.StatusCode))
	if read != nil && response.StatusCode == http.StatusOK {
		read(response.Body)
		return
	}
	_, _ = io.Copy(io.Discard, response.Body) // The status is what counts.
}

// get sends a GET to the API.
func (w *attacker) get(ctx context.Context, path, key string, read func(io.Reader)) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, w.target.API+path, nil)
	if err != nil {
		w.count("error")
		return
	}
	w.send(ctx, request, key, read)
}

// getSilently sends a GET to the API that announces a body, and never sends it.
func (w *attacker) getSilently(ctx context.Context, path, key string) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", strings.TrimPrefix(w.target.API, "http://"))
	if err != nil {
		w.count("error")
		return
	}
	defer func() { _ = conn.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	_, _ = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: 1\r\n\r\n",
		path, key)
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return
	}
	defer func() { _ = response.Body.Close() }()
	w.count(strconv.Itoa(response.StatusCode))
	_, _ = io.Copy(io.Discard, response.Body) // The status is what counts.
}

// patch sends a PATCH with a JSON body to the API.
func (w *attacker) patch(ctx context.Context, path, key, body string) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPatch, w.target.API+path, strings.NewReader(body))
	if err != nil {
		w.count("error")
		return
	}
	request.Header.Set("Content-Type", "application/json")
	w.send(ctx, request, key, nil)
}

// post sends uploads to the receiver.
func (w *attacker) post(ctx context.Context, key, encoding string, body io.Reader) {
	w.postTo(ctx, "/uploads", key, encoding, body)
}

// postTo sends a body to a path of the receiver.
func (w *attacker) postTo(ctx context.Context, path, key, encoding string, body io.Reader) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, w.target.Receiver+path, body)
	if err != nil {
		w.count("error")
		return
	}
	if encoding != "" {
		request.Header.Set("Content-Encoding", encoding)
	}
	w.send(ctx, request, key, nil)
}

// repeat calls f in n goroutines, again and again with a pause, until ctx ends. The pause bounds what the attacker
// costs a machine that it shares with the service.
func repeat(ctx context.Context, n int, pause time.Duration, f func(ctx context.Context, i int)) {
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() { retry.Every(ctx, pause, func(ctx context.Context) { f(ctx, i) }) })
	}
	group.Wait()
}

// spread calls f n times over a duration, each in a goroutine of its own, and returns when all have returned.
func spread(ctx context.Context, n int, over time.Duration, f func(ctx context.Context, i int)) {
	const tick = 5 * time.Millisecond
	var group sync.WaitGroup
	defer group.Wait()
	began := time.Now()
	for sent := 0; sent < n; {
		due := min(n, int(float64(n)*time.Since(began).Seconds()/over.Seconds()))
		for i := sent; i < due; i++ {
			group.Go(func() { f(ctx, i) })
		}
		sent = due
		if retry.Sleep(ctx, tick) != nil {
			return
		}
	}
}
