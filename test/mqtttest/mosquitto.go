package mqtttest

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/dev/command"
	"roomsensor/internal/dev/postgres/debian"
	"roomsensor/internal/retry"
	"roomsensor/test/conformance"
	"roomsensor/test/dbtest"
	"roomsensor/test/proctest"
)

// Mosquitto is Debian's broker, which keeps its sessions in a directory, and its client.
type Mosquitto struct {
	*proctest.Process

	host, port     string
	broker, client string // programs
	config         string
	log            *proctest.Output
}

// programs finds mosquitto and mosquitto_pub: those that are installed, or those of a private copy of Debian's
// packages.
var programs = sync.OnceValues(func() (found [2]string, err error) {
	found = [2]string{command.Find("mosquitto"), command.Find("mosquitto_pub")}
	if found[0] != "" && found[1] != "" {
		return found, nil
	}
	copied, err := dbtest.DebianPrograms("mosquitto", debian.Mosquitto)
	for _, path := range copied {
		switch filepath.Base(path) {
		case "mosquitto":
			found[0] = path
		case "mosquitto_pub":
			found[1] = path
		}
	}
	return found, err
})

// NewMosquitto starts a broker that ends with the test. It writes its state to the disk after each change. The test is
// skipped on a machine that cannot get mosquitto.
func NewMosquitto(t testing.TB) *Mosquitto {
	t.Helper()
	conformance.NeedsMachine(t, "mosquitto")
	paths, err := programs()
	if err != nil {
		t.Skipf("needs mosquitto: %v", err)
	}
	dir := t.TempDir()
	m := &Mosquitto{
		broker: paths[0], client: paths[1], config: filepath.Join(dir, "mosquitto.conf"), log: &proctest.Output{},
	}
	m.host, m.port, _ = net.SplitHostPort(proctest.Address(t))
	lines := []string{
		"persistence true", "persistence_location " + dir + "/", "autosave_on_changes true", "autosave_interval 1",
		"max_queued_messages 0", "listener " + m.port + " " + m.host, "allow_anonymous true",
	}
	if os.Geteuid() == 0 {
		lines = append([]string{"user root"}, lines...) // The directory belongs to root.
	}
	require.NoError(t, os.WriteFile(m.config, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
	require.NoError(t, m.Restart(t.Context()))
	t.Cleanup(func() { m.Kill() }) // The process of the last restart.
	return m
}

// Restart starts the broker again after its end.
func (m *Mosquitto) Restart(ctx context.Context) (err error) {
	m.Process, err = proctest.Start(proctest.Command{Path: m.broker, Args: []string{"-c", m.config}, Log: m.log})
	if err != nil {
		return err
	}
	for ctx.Err() == nil && !m.Ended() {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort(m.host, m.port))
		if err == nil {
			return conn.Close() //nolint:wrapcheck // Nothing was sent.
		}
		_ = retry.Sleep(ctx, 10*time.Millisecond) // The loop ends with ctx.
	}
	m.Kill()
	return fmt.Errorf("mosquitto did not start: %s: %w", m.log, ctx.Err())
}

// Send publishes a message with QoS 1. It returns nil after the broker has acknowledged it.
func (m *Mosquitto) Send(ctx context.Context, topic, payload string, args ...string) error {
	args = append([]string{"-V", "5", "-h", m.host, "-p", m.port, "-q", "1", "-t", topic, "-s"}, args...)
	cmd := exec.CommandContext(ctx, m.client, args...) //nolint:gosec // In tests.
	cmd.Stdin = strings.NewReader(payload)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("publishing with mosquitto_pub: %w: %s", err, out)
	}
	return nil
}

// Save returns after the broker has written to its disk what it had acknowledged before. It acknowledges before it
// writes: what it acknowledged just before a SIGKILL may be lost by the broker itself.
func (m *Mosquitto) Save(ctx context.Context) error {
	saved := func() time.Time {
		info, err := os.Stat(filepath.Join(filepath.Dir(m.config), "mosquitto.db"))
		if err != nil {
			return time.Time{} // It has written nothing yet.
		}
		return info.ModTime()
	}
	for range 2 { // The first time, the broker may have begun to write before.
		before := saved()
		if err := m.Send(ctx, "saved", before.String(), "-r"); err != nil {
			return err
		}
		err := retry.Until(ctx, 10*time.Millisecond, func(context.Context) (bool, error) {
			return saved().After(before), nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Address returns the URL of the broker.
func (m *Mosquitto) Address() string { return "mqtt://" + net.JoinHostPort(m.host, m.port) }

// Publish publishes a message with QoS 1.
func (m *Mosquitto) Publish(t testing.TB, topic, payload string, retained bool) {
	t.Helper()
	var args []string
	if retained {
		args = []string{"-r"}
	}
	require.NoError(t, m.Send(t.Context(), topic, payload, args...))
}
