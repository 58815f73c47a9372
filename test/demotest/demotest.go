// Package demotest runs a demo: the whole service in the process of a test, with devices that have a history.
package demotest

import (
	"context"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/demo"
	"roomsensor/test/proctest"
)

const (
	// ready is the last text that a demo prints before it is ready.
	ready = "Ctrl-C stops the demo"
	// patience bounds the start and the end.
	patience = 5 * time.Minute
)

// Demo is a demo, and what it printed.
type Demo struct {
	proctest.Output
	ready   chan struct{}
	isReady func()
	stop    context.CancelFunc
	ended   chan struct{}
	err     error // once it has ended
}

// Options returns the options of a demo in a database, with free ports and six days of history.
func Options(t *testing.T, databaseURL string) demo.Options {
	t.Helper()
	return demo.Options{
		DatabaseURL: databaseURL,
		DataDir:     filepath.Join(t.TempDir(), "demo"),
		History:     6 * 24 * time.Hour, // Longer than the offline device has been offline.
		APIAddr:     "127.0.0.1:0", APIOpsAddr: "127.0.0.1:0", IngestAddr: "127.0.0.1:0", IngestOpsAddr: "127.0.0.1:0",
		DashboardAddr: "127.0.0.1:0", DashboardOpsAddr: "127.0.0.1:0", NotifyOpsAddr: "127.0.0.1:0",
		Every: time.Second,
	}
}

// Start starts a demo and waits until it is ready. It ends with the test at the latest.
func Start(t *testing.T, o demo.Options) *Demo {
	t.Helper()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	d := &Demo{ready: make(chan struct{}), stop: stop, ended: make(chan struct{})}
	d.isReady = sync.OnceFunc(func() { close(d.ready) })
	o.Out = d
	go func() {
		defer close(d.ended)
		d.err = demo.Run(ctx, o)
	}()
	t.Cleanup(func() { d.Stop(t) })
	select {
	case <-d.ready:
	case <-d.ended:
		require.FailNow(t, "the demo ended", "%v\n%s", d.err, d)
	case <-time.After(patience):
		require.FailNow(t, "the demo does not start", "%s", d)
	}
	return d
}

// Write records what the demo prints.
func (d *Demo) Write(text []byte) (int, error) {
	n, err := d.Output.Write(text)
	if strings.Contains(d.String(), ready) {
		d.isReady()
	}
	return n, err
}

// Stop stops the demo, like Ctrl-C, if it still runs.
func (d *Demo) Stop(t *testing.T) {
	t.Helper()
	d.stop()
	select {
	case <-d.ended:
		require.NoError(t, d.err)
	case <-time.After(patience):
		require.FailNow(t, "the demo does not end", "%s", d)
	}
}

// Value returns a value of the printed overview by its label, for example "Read key".
func (d *Demo) Value(t *testing.T, label string) string {
	t.Helper()
	found := regexp.MustCompile(`(?m)^  ` + regexp.QuoteMeta(label) + `\s+(\S+)$`).FindStringSubmatch(d.String())
	require.NotNil(t, found, "%s is not in:\n%s", label, d)
	return found[1]
}
