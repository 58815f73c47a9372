package demo_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/client"
	"roomsensor/internal/demo"
	"roomsensor/internal/dev/postgres"
	"roomsensor/test/dbtest"
	"roomsensor/test/demotest"
	"roomsensor/test/openapitest"
)

// runningDemo is a demo whose state the tests check.
type runningDemo struct{ *demotest.Demo }

// demoOptions returns the options of a demo in an empty database.
func demoOptions(t *testing.T) demo.Options {
	t.Helper()
	return demotest.Options(t, dbtest.Empty(t).URL)
}

func startDemo(t *testing.T, o demo.Options) runningDemo {
	t.Helper()
	return runningDemo{demotest.Start(t, o)}
}

// response is an HTTP response whose body was read.
type response struct {
	status int
	header http.Header
	body   []byte
}

// runCommand sends the request of a printed curl command. A shell parses the command, with a function in place of curl.
func runCommand(t *testing.T, command string) *response {
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

func request(t *testing.T, method, url, body string, header http.Header) *response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	require.NoError(t, err)
	r.Header = header
	got, err := (&http.Client{Transport: openapitest.Transport(http.DefaultTransport)}).Do(r)
	require.NoError(t, err)
	defer got.Body.Close() //nolint:errcheck // It was read.
	text, err := io.ReadAll(got.Body)
	require.NoError(t, err)
	return &response{got.StatusCode, got.Header, text}
}

// api returns a client of the API with the read key. It checks the responses.
func (d runningDemo) api(t *testing.T) *client.Client {
	t.Helper()
	c, err := client.New(d.Value(t, "Base URL"), d.Value(t, "Read key"), client.WithMaxAttempts(1),
		client.WithHTTPClient(&http.Client{Transport: openapitest.Transport(http.DefaultTransport)}))
	require.NoError(t, err)
	return c
}

// devices returns the current devices by name; the unnamed one is "".
func (d runningDemo) devices(t *testing.T) map[string]client.CurrentDevice {
	t.Helper()
	named := map[string]client.CurrentDevice{}
	for device, err := range d.api(t).CurrentDevices(t.Context(), client.DeviceQuery{}) {
		require.NoError(t, err)
		name := ""
		if device.DisplayName != nil {
			name = *device.DisplayName
		}
		named[name] = device
	}
	require.Len(t, named, 15)
	return named
}

// readingKey identifies a reading.
type readingKey struct {
	device uuid.UUID
	bucket time.Time
}

// readings returns the exported readings of the whole team.
func (d runningDemo) readings(t *testing.T) (keys []readingKey) {
	t.Helper()
	for r, err := range d.api(t).ExportReadings(t.Context(), client.ExportQuery{Window: client.Last(7 * 24 * time.Hour)}) {
		require.NoError(t, err)
		keys = append(keys, readingKey{r.DeviceID, r.BucketAt})
	}
	return keys
}

func TestRun(t *testing.T) {
	t.Parallel()
	o := demoOptions(t)
	inUse, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, inUse.Close()) })
	o.NATSPort = inUse.Addr().(*net.TCPAddr).Port
	d := startDemo(t, o)
	require.Contains(t, d.String(), inUse.Addr().String()+" is in use: NATS listens on "+
		strings.TrimPrefix(d.Value(t, "NATS_URL"), "nats://")+" instead.\n")
	d.requireEveryState(t)
	d.requireHistory(t)
	d.requireLiveUploads(t)
	d.requirePrinted(t) // Last, because the commands change devices.

	info, err := os.Stat(filepath.Join(o.DataDir, "demo.json"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm(), "it holds the keys")
	o.Out = io.Discard
	require.ErrorContains(t, demo.Run(t.Context(), o), "A demo already runs on "+o.DataDir)
}

// requireEveryState checks that the devices are in every state that a client must handle.
func (d runningDemo) requireEveryState(t *testing.T) {
	t.Helper()
	devices := d.devices(t)
	status := map[client.Status]int{}
	for _, device := range devices {
		status[device.Status]++
	}
	require.Equal(t, map[client.Status]int{client.StatusOnline: 12, client.StatusStale: 1, client.StatusOffline: 2}, status)
	require.Equal(t, client.StatusStale, devices["Meeting room"].Status)
	require.NotNil(t, devices["Meeting room"].Latest)
	require.Equal(t, client.StatusOffline, devices["Recovery room"].Status)
	require.NotNil(t, devices["Recovery room"].LastSeenAt)
	require.NotNil(t, devices["Recovery room"].Latest)
	require.Nil(t, devices["Spare"].LastSeenAt, "it never reported")
	require.Nil(t, devices["Spare"].Latest)
	require.Nil(t, devices[""].ActiveAssignment)
	require.NotNil(t, devices["Dorm 12"].ActiveAssignment)
	for _, name := range []string{"Weight room", "Recovery room"} {
		device, err := d.api(t).Device(t.Context(), devices[name].DeviceID)
		require.NoError(t, err)
		require.NotNil(t, device.FirmwareVersion)
		require.NotNil(t, device.Signal.RSSIDBM)
	}
	var ends []*time.Time
	for assignment, err := range d.api(t).Assignments(t.Context(), devices["Dorm 12"].DeviceID) {
		require.NoError(t, err)
		ends = append(ends, assignment.EndedAt)
	}
	require.Len(t, ends, 2)
	require.Nil(t, ends[0])
	require.NotNil(t, ends[1])
}

// requireHistory checks that the history has what the pages of the dashboard show: a night with bad air, a gap, readings
// that arrived late, and rejects.
func (d runningDemo) requireHistory(t *testing.T) {
	t.Helper()
	devices := d.devices(t)
	now := time.Now()
	type counts struct {
		all         int
		late        int // arrived more than an hour after their bucket
		bad         int // bad air
		unconnected int // what the classroom measured without a connection, but for the last hour of that time
	}
	count := func(name string, last time.Duration) (n counts) {
		q := client.ReadingQuery{Window: client.Last(last)}
		for r, err := range d.api(t).Readings(t.Context(), devices[name].DeviceID, q) {
			require.NoError(t, err)
			n.all++
			if r.IngestedAt.Sub(r.BucketAt) > time.Hour+5*time.Minute {
				n.late++
			}
			if r.CO2PPM != nil && *r.CO2PPM > 1500 {
				n.bad++
			}
			if age := now.Sub(r.BucketAt); age < 20*time.Hour && age > 12*time.Hour+5*time.Minute {
				n.unconnected++
			}
		}
		return n
	}
	// Any room may be without power for up to 7 hours of a day.
	const days = 48 * time.Hour
	n := count("Weight room", days)
	require.Greater(t, n.all, 400)
	require.Zero(t, n.late+n.bad)
	require.Greater(t, count("Dorm 14", 5*24*time.Hour).bad, 50, "nobody is in it in some nights")
	require.Less(t, count("Physio room", days).all, 520)
	n = count("Classroom", days)
	require.Positive(t, n.late)
	require.InDelta(t, n.unconnected, n.late, 3)
}

// requireLiveUploads waits until a device has uploaded again. Some may be without power.
func (d runningDemo) requireLiveUploads(t *testing.T) {
	t.Helper()
	began := time.Now()
	require.Eventually(t, func() bool {
		for _, device := range d.devices(t) {
			if device.LastSeenAt != nil && device.LastSeenAt.After(began) {
				return true
			}
		}
		return false
	}, 20*time.Second, 200*time.Millisecond)
}

// commands returns the printed commands.
func (d runningDemo) commands() []string {
	return regexp.MustCompile(`(?m)^curl .*$`).FindAllString(d.String(), -1)
}

// requirePrinted checks that each printed URL and command works.
func (d runningDemo) requirePrinted(t *testing.T) {
	t.Helper()
	for _, url := range []string{
		d.Value(t, "Docs"), d.Value(t, "Docs") + "/openapi.yaml", d.Value(t, "Health of the API"), d.Value(t, "Health of ingest"),
		d.Value(t, "Dashboard"), d.Value(t, "Health of dashboard"),
	} {
		require.Equal(t, http.StatusOK, request(t, http.MethodGet, url, "", nil).status, url)
	}
	commands := d.commands()
	require.Len(t, commands, 7)
	powered := time.Since(d.devices(t)["Weight room"].Latest.BucketAt) < 50*time.Minute
	for _, command := range commands {
		a := runCommand(t, command)
		require.Less(t, a.status, 300, "%s\n%s", command, a.body)
		require.NotEmpty(t, a.body)
		if powered && strings.Contains(command, "readings?last=1h") || strings.Contains(command, "assignments") {
			var list struct {
				Data []json.RawMessage `json:"data"`
			}
			require.NoError(t, json.Unmarshal(a.body, &list), "%s", a.body)
			require.NotEmpty(t, list.Data, command)
		}
		if strings.Contains(command, "Idempotency-Key") {
			require.Equal(t, "true", runCommand(t, command).header.Get("Idempotent-Replayed"))
		}
	}
}

// TestRunContinues checks that a second run continues with the data of the first, and that a reset creates a new team.
func TestRunContinues(t *testing.T) {
	t.Parallel()
	o := demoOptions(t)
	first := startDemo(t, o)
	before := first.readings(t)
	require.Regexp(t, `(?m)^  \S{36}  \(unnamed\) *$`, first.String())
	require.Regexp(t, `(?m)^  \S{36}  Spare +offline: never reported$`, first.String())
	require.Regexp(t, `(?m)^  \S{36}  Meeting room +stale: last seen 5 hours ago$`, first.String())
	for _, command := range first.commands() {
		require.Less(t, runCommand(t, command).status, 300, command)
	}
	require.Eventually(t, func() bool { return first.devices(t)["Spare"].LastSeenAt != nil },
		20*time.Second, 50*time.Millisecond)
	first.Stop(t)
	require.Contains(t, first.String(), "Stopped.")

	second := startDemo(t, o)
	for _, email := range []string{"viewer@example.com", "editor@example.com", "admin@example.com"} {
		require.NotEqual(t, first.Value(t, email), second.Value(t, email), "each start prints links that work")
	}
	for _, label := range []string{"Read key", "Read-write key", "Ingest key"} {
		require.Equal(t, first.Value(t, label), second.Value(t, label))
	}
	require.Regexp(t, `(?m)^  \S{36}  Corridor *$`, second.String(), "the name was changed")
	require.Regexp(t, `(?m)^  \S{36}  Spare *$`, second.String(), "it has reported")
	require.Len(t, second.devices(t), 15)
	after := second.readings(t)
	keys := map[readingKey]bool{}
	for _, key := range after {
		require.False(t, keys[key], "a duplicate reading: %v", key)
		keys[key] = true
	}
	for _, key := range before {
		require.True(t, keys[key], "a reading is missing: %v", key)
	}
	require.Less(t, len(after)-len(before), 15*4, "only missed readings are new")
	second.Stop(t)

	// In the database of DatabaseURL, a reset keeps the old team.
	o.Reset = true
	third := startDemo(t, o)
	require.NotEqual(t, first.Value(t, "Read key"), third.Value(t, "Read key"))
	require.Equal(t, client.StatusOnline, third.devices(t)["Weight room"].Status)
}

// TestRunStopsItsDatabase checks that the demo stops the database server that it started, and keeps its data.
func TestRunStopsItsDatabase(t *testing.T) {
	t.Parallel()
	o := demoOptions(t)
	o.DatabaseURL, o.DataDir = "", reachableDir(t)
	database := filepath.Join(o.DataDir, "database")
	t.Cleanup(func() { require.NoError(t, postgres.Remove(context.WithoutCancel(t.Context()), database)) })
	first := startDemo(t, o)
	server, err := postgres.Find(t.Context(), database)
	require.NoError(t, err)
	require.Equal(t, server.URL, first.Value(t, "DATABASE_URL"))
	first.Stop(t)
	_, err = postgres.Find(t.Context(), database)
	require.ErrorIs(t, err, postgres.ErrNotRunning)

	second := startDemo(t, o)
	require.Equal(t, first.Value(t, "Read key"), second.Value(t, "Read key"))
	require.Equal(t, first.Value(t, "DATABASE_URL"), second.Value(t, "DATABASE_URL"))
	require.Len(t, second.devices(t), 15)
	second.Stop(t)
}

// reachableDir returns a directory that other users can enter: PostgreSQL does not run as root.
func reachableDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "roomsensor-demo-") //nolint:usetesting // Only its owner can enter t.TempDir.
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	require.NoError(t, os.Chmod(dir, 0o755))
	return dir
}

// TestRunInterrupted checks that an interrupt during the first start is not an error, and that the next start completes
// it.
func TestRunInterrupted(t *testing.T) {
	t.Parallel()
	o := demoOptions(t)
	for _, trigger := range []string{"migrated", "Filling the history"} {
		ctx, interrupt := context.WithCancel(t.Context())
		o.Out = interruptAt{trigger, interrupt}
		require.NoError(t, demo.Run(ctx, o))
	}
	d := startDemo(t, o)
	require.Greater(t, len(d.readings(t)), 10*5*288)
}

// interruptAt is an output that interrupts the demo when it prints a text.
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
