package app_test

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/app"
	"roomsensor/internal/dbtest"
	"roomsensor/internal/localdb"
	"roomsensor/internal/openapitest"
)

// runningDemo is a demo and what it printed.
type runningDemo struct {
	out  *transcript
	stop func()
	done chan error
}

// transcript is written by the demo and read by the test.
type transcript struct {
	mu    sync.Mutex
	text  bytes.Buffer
	ready chan struct{}
}

// lastWords are what a demo says once everything works.
const lastWords = "Ctrl-C stops the demo"

func (o *transcript) Write(text []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	before := strings.Contains(o.text.String(), lastWords)
	o.text.Write(text)
	if !before && strings.Contains(o.text.String(), lastWords) {
		close(o.ready)
	}
	return len(text), nil
}

func (o *transcript) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

func demoOptions(t *testing.T) app.DemoOptions {
	t.Helper()
	return app.DemoOptions{
		DatabaseURL: dbtest.Empty(t).URL,
		DataDir:     filepath.Join(t.TempDir(), "demo"),
		History:     6 * 24 * time.Hour, // More than the device that is offline is away.
		APIAddr:     "127.0.0.1:0", APIOpsAddr: "127.0.0.1:0", IngestAddr: "127.0.0.1:0", IngestOpsAddr: "127.0.0.1:0",
		Every: time.Second,
	}
}

// startDemo returns once the demo has printed what to try.
func startDemo(t *testing.T, o app.DemoOptions) *runningDemo {
	t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	d := &runningDemo{out: &transcript{ready: make(chan struct{})}, stop: stop, done: make(chan error, 1)}
	t.Cleanup(stop)
	o.Out = d.out
	go func() { d.done <- app.Demo(ctx, o) }()
	select {
	case <-d.out.ready:
	case err := <-d.done:
		require.NoError(t, err, "the demo ended:\n%s", d.out)
	case <-time.After(3 * time.Minute):
		t.Fatalf("the demo does not start:\n%s", d.out)
	}
	return d
}

// end stops the demo as Ctrl-C does.
func (d *runningDemo) end(t *testing.T) {
	t.Helper()
	d.stop()
	select {
	case err := <-d.done:
		require.NoError(t, err)
	case <-time.After(25 * time.Second):
		t.Fatalf("the demo does not end:\n%s", d.out)
	}
}

// value is what a line of the list says, such as "Read key".
func (d *runningDemo) value(t *testing.T, label string) string {
	t.Helper()
	found := regexp.MustCompile(`(?m)^  ` + regexp.QuoteMeta(label) + `\s+(\S+)$`).FindStringSubmatch(d.out.String())
	require.NotNil(t, found, "%s is not in:\n%s", label, d.out)
	return found[1]
}

// answer is a response as far as the tests look at it.
type answer struct {
	status int
	header http.Header
	body   []byte
}

func (a *answer) object(t *testing.T) map[string]any {
	t.Helper()
	var object map[string]any
	require.NoError(t, json.Unmarshal(a.body, &object), "%s", a.body)
	return object
}

func (a *answer) data(t *testing.T) []any {
	t.Helper()
	data, ok := a.object(t)["data"].([]any)
	require.True(t, ok, "%s", a.body)
	return data
}

// paste carries out a printed command: the shell reads it, only curl is ours.
func paste(t *testing.T, command string) *answer {
	t.Helper()
	read := exec.CommandContext(t.Context(), "sh", "-c", `curl() { printf '%s\0' "$@"; }; `+command)
	words, err := read.Output()
	require.NoError(t, err)
	method, url, body, header := http.MethodGet, "", "", http.Header{}
	args := strings.Split(strings.TrimSuffix(string(words), "\x00"), "\x00")
	for i := 0; i < len(args); i++ {
		switch args[i] {
		case "-sS":
		case "-X":
			i++
			method = args[i]
		case "-H":
			i++
			name, value, _ := strings.Cut(args[i], ": ")
			header.Add(name, value)
		case "-d":
			i++
			body = args[i]
			if method == http.MethodGet {
				method = http.MethodPost
			}
		default:
			require.Empty(t, url, "a second URL: %s", args[i])
			url = args[i]
		}
	}
	return request(t, method, url, body, header)
}

func request(t *testing.T, method, url, body string, header http.Header) *answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	require.NoError(t, err)
	r.Header = header
	response, err := (&http.Client{Transport: openapitest.Transport(http.DefaultTransport)}).Do(r)
	require.NoError(t, err)
	defer response.Body.Close() //nolint:errcheck // It was read.
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return &answer{response.StatusCode, response.Header, text}
}

// get asks the API with the read key.
func (d *runningDemo) get(t *testing.T, path string) *answer {
	t.Helper()
	a := request(t, http.MethodGet, d.value(t, "Base URL")+path, "",
		http.Header{"Authorization": {"Bearer " + d.value(t, "Read key")}})
	require.Equal(t, http.StatusOK, a.status, "%s: %s", path, a.body)
	return a
}

// devices are the current devices by name; the unnamed one is "".
func (d *runningDemo) devices(t *testing.T) map[string]map[string]any {
	t.Helper()
	named := map[string]map[string]any{}
	for _, item := range d.get(t, "/devices/current").data(t) {
		device := item.(map[string]any)
		name, _ := device["display_name"].(string)
		named[name] = device
	}
	require.Len(t, named, 12)
	return named
}

// rows are the readings of the whole team, in the order of the export.
func (d *runningDemo) rows(t *testing.T) [][]string {
	t.Helper()
	rows, err := csv.NewReader(bytes.NewReader(d.get(t, "/readings.csv?last=7d").body)).ReadAll()
	require.NoError(t, err)
	return rows[1:]
}

func TestDemo(t *testing.T) {
	t.Parallel()
	o := demoOptions(t)
	d := startDemo(t, o)
	defer d.end(t)
	d.showsEveryState(t)
	d.goesOnLive(t)
	d.servesWhatItPrints(t) // Last: what is pasted changes devices.

	info, err := os.Stat(filepath.Join(o.DataDir, "demo.json"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm(), "it holds the keys")
	o.Out = io.Discard
	require.ErrorContains(t, app.Demo(t.Context(), o), "A demo runs on "+o.DataDir+" already.")
}

func (d *runningDemo) showsEveryState(t *testing.T) {
	t.Helper()
	devices := d.devices(t)
	status := map[any]int{}
	for _, device := range devices {
		status[device["status"]]++
	}
	require.Equal(t, map[any]int{"online": 9, "stale": 1, "offline": 2}, status)
	require.Equal(t, "stale", devices["Meeting room"]["status"])
	require.NotNil(t, devices["Meeting room"]["latest"])
	require.Equal(t, "offline", devices["Recovery room"]["status"])
	require.NotNil(t, devices["Recovery room"]["last_seen_at"])
	require.NotNil(t, devices["Recovery room"]["latest"])
	require.Nil(t, devices["Spare"]["last_seen_at"], "it never reported")
	require.Nil(t, devices["Spare"]["latest"])
	require.Nil(t, devices[""]["active_assignment"])
	require.NotNil(t, devices["Dorm 12"]["active_assignment"])
	for _, name := range []string{"Weight room", "Recovery room"} {
		device := d.get(t, "/devices/"+devices[name]["device_id"].(string)).object(t)
		require.NotNil(t, device["firmware_version"])
		require.NotNil(t, device["signal"].(map[string]any)["rssi_dbm"])
	}
	blocks := d.get(t, "/devices/"+devices["Dorm 12"]["device_id"].(string)+"/assignments").data(t)
	require.Len(t, blocks, 2)
	require.Nil(t, blocks[0].(map[string]any)["ended_at"])
	require.NotNil(t, blocks[1].(map[string]any)["ended_at"])
}

// New data are visible within seconds: the live devices upload on.
func (d *runningDemo) goesOnLive(t *testing.T) {
	t.Helper()
	seen := d.devices(t)["Weight room"]["last_seen_at"]
	require.Eventually(t, func() bool {
		return d.devices(t)["Weight room"]["last_seen_at"] != seen
	}, 20*time.Second, 200*time.Millisecond)
}

// commands are what it says to paste.
func (d *runningDemo) commands() []string {
	return regexp.MustCompile(`(?m)^curl .*$`).FindAllString(d.out.String(), -1)
}

func (d *runningDemo) servesWhatItPrints(t *testing.T) {
	t.Helper()
	for _, url := range []string{
		d.value(t, "Docs"), d.value(t, "Docs") + "/openapi.yaml", d.value(t, "Health of the API"), d.value(t, "Health of ingest"),
	} {
		require.Equal(t, http.StatusOK, request(t, http.MethodGet, url, "", nil).status, url)
	}
	commands := d.commands()
	require.Len(t, commands, 7)
	for _, command := range commands {
		a := paste(t, command)
		require.Less(t, a.status, 300, "%s\n%s", command, a.body)
		require.NotEmpty(t, a.body)
		if strings.Contains(command, "readings?last=1h") || strings.Contains(command, "assignments") {
			require.NotEmpty(t, a.data(t), command)
		}
		if strings.Contains(command, "Idempotency-Key") {
			require.Equal(t, "true", paste(t, command).header.Get("Idempotent-Replayed"))
		}
	}
}

func TestDemoGoesOnWhereItStopped(t *testing.T) {
	t.Parallel()
	o := demoOptions(t)
	first := startDemo(t, o)
	before := first.rows(t)
	require.Regexp(t, `(?m)^  \S{36}  \(unnamed\) *$`, first.out.String())
	require.Regexp(t, `(?m)^  \S{36}  Spare +offline: never reported$`, first.out.String())
	require.Regexp(t, `(?m)^  \S{36}  Meeting room +stale: last seen 5 hours ago$`, first.out.String())
	for _, command := range first.commands() {
		require.Less(t, paste(t, command).status, 300, command)
	}
	require.Eventually(t, func() bool { return first.devices(t)["Spare"]["last_seen_at"] != nil },
		20*time.Second, 50*time.Millisecond)
	first.end(t)
	require.Contains(t, first.out.String(), "Stopped.")

	second := startDemo(t, o)
	for _, label := range []string{"Read key", "Read-write key", "Ingest key"} {
		require.Equal(t, first.value(t, label), second.value(t, label))
	}
	require.Regexp(t, `(?m)^  \S{36}  Corridor *$`, second.out.String(), "as it was named")
	require.Regexp(t, `(?m)^  \S{36}  Spare *$`, second.out.String(), "it did report")
	require.Len(t, second.get(t, "/devices").data(t), 12)
	after := second.rows(t)
	keys := map[string]bool{}
	for _, row := range after {
		key := row[0] + row[1]
		require.False(t, keys[key], "a reading stands twice: %s", row)
		keys[key] = true
	}
	for _, row := range before {
		require.True(t, keys[row[0]+row[1]], "a reading is gone: %s", row)
	}
	require.Less(t, len(after)-len(before), 12*4, "only what was missed is new")
	second.end(t)

	// In a database that was given, a reset leaves the old team alone.
	o.Reset = true
	anew := startDemo(t, o)
	defer anew.end(t)
	require.NotEqual(t, first.value(t, "Read key"), anew.value(t, "Read key"))
	require.Equal(t, "online", anew.devices(t)["Weight room"]["status"])
}

// The database server that a demo started does not outlive it, and its data do.
func TestDemoStopsTheDatabaseThatItStarted(t *testing.T) {
	t.Parallel()
	o := demoOptions(t)
	o.DatabaseURL, o.DataDir = "", reachableDir(t)
	database := filepath.Join(o.DataDir, "database")
	t.Cleanup(func() { require.NoError(t, localdb.Remove(context.WithoutCancel(t.Context()), database)) })
	first := startDemo(t, o)
	server, err := localdb.Find(t.Context(), database)
	require.NoError(t, err)
	require.Equal(t, server.URL, first.value(t, "DATABASE_URL"))
	first.end(t)
	_, err = localdb.Find(t.Context(), database)
	require.ErrorIs(t, err, localdb.ErrNotRunning)

	second := startDemo(t, o)
	require.Equal(t, first.value(t, "Read key"), second.value(t, "Read key"))
	require.Equal(t, first.value(t, "DATABASE_URL"), second.value(t, "DATABASE_URL"))
	require.Len(t, second.devices(t), 12)
	second.end(t)
}

// reachableDir is a directory that another user may pass: PostgreSQL does not
// run as root.
func reachableDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "roomsensor-demo-") //nolint:usetesting // That one is for its owner alone.
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	require.NoError(t, os.Chmod(dir, 0o755))
	return dir
}

// An interrupt at any moment of the first start is no error, and the next
// start completes what was begun.
func TestDemoCanBeInterruptedWhileItStarts(t *testing.T) {
	t.Parallel()
	o := demoOptions(t)
	for _, moment := range []string{"migrated", "Filling the history"} {
		ctx, interrupt := context.WithCancel(t.Context())
		o.Out = interruptAt{moment, interrupt}
		require.NoError(t, app.Demo(ctx, o))
	}
	d := startDemo(t, o)
	defer d.end(t)
	require.Greater(t, len(d.rows(t)), 10*5*288)
}

type interruptAt struct {
	text      string
	interrupt func()
}

func (w interruptAt) Write(text []byte) (int, error) {
	if bytes.Contains(text, []byte(w.text)) {
		w.interrupt()
	}
	return len(text), nil
}
