package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"sync"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
	zlog "github.com/rs/zerolog/log"
)

// Toxic is a way to spoil a line.
type Toxic struct {
	Type       string         `json:"type"`
	Attributes map[string]int `json:"attributes"`
	// Upstream is the direction away from the worker; false is towards it.
	Upstream bool `json:"upstream"`
}

// The toxics: latency, a black hole, a reset, and a slow line.
var toxics = []Toxic{
	{Type: "latency", Attributes: map[string]int{"latency": 400, "jitter": 300}}, // milliseconds
	{Type: "timeout", Attributes: map[string]int{"timeout": 0}},                  // until it heals
	{Type: "reset_peer", Attributes: map[string]int{"timeout": 0}},               // at the first byte
	{Type: "bandwidth", Attributes: map[string]int{"rate": 24}},                  // kilobytes a second
}

func (t *Toxic) stream() string {
	if t.Upstream {
		return "upstream"
	}
	return "downstream"
}

func (t *Toxic) String() string { return t.Type + " " + t.stream() }

// Where the lines of a worker lead.
const (
	toDatabase = "database"
	toQueue    = "queue"
)

var lines = []string{toDatabase, toQueue}

// line is a connection that can be spoilt: a proxy in this process.
type line struct {
	proxy *toxiproxy.Proxy
	url   string // the upstream's, with the address of the proxy
}

// silence ends what Toxiproxy writes to the standard error by itself.
var silence = sync.OnceFunc(func() { zlog.Logger = zerolog.Nop() })

// newLine opens a line to the server of a URL.
func newLine(name, upstream string) (*line, error) {
	silence()
	u, err := url.Parse(upstream)
	if err != nil {
		return nil, fmt.Errorf("opening the line %s: %w", name, err)
	}
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	l := &line{proxy: toxiproxy.NewProxy(server, name, "127.0.0.1:0", u.Host)}
	if err := l.proxy.Start(); err != nil {
		return nil, fmt.Errorf("opening the line %s: %w", name, err)
	}
	u.Host = l.proxy.Listen
	l.url = u.String()
	return l, nil
}

// poison spoils the line for the connections that are there and those that come.
func (l *line) poison(t Toxic) error {
	wire, err := json.Marshal(struct {
		Name       string         `json:"name"`
		Type       string         `json:"type"`
		Stream     string         `json:"stream"`
		Attributes map[string]int `json:"attributes"`
	}{t.Type, t.Type, t.stream(), t.Attributes})
	if err == nil {
		_, err = l.proxy.Toxics.AddToxicJson(bytes.NewReader(wire))
	}
	if err != nil {
		return fmt.Errorf("spoiling the line %s: %w", l.proxy.Name, err)
	}
	return nil
}

// healTimeout is for data that a toxic still holds; beyond it connections are cut.
const healTimeout = 10 * time.Second

// heal takes the toxic away. A black hole ends with its connections: what fell into it cannot come back.
func (l *line) heal(t Toxic) error {
	healed := make(chan error, 1)
	go func() { healed <- l.proxy.Toxics.RemoveToxic(context.Background(), t.Type) }()
	timer := time.NewTimer(healTimeout)
	defer timer.Stop()
	var err error
	select {
	case err = <-healed:
	case <-timer.C:
		l.proxy.Stop()
		err = <-healed
		if err == nil {
			err = l.proxy.Start()
		}
	}
	if err != nil {
		return fmt.Errorf("healing the line %s: %w", l.proxy.Name, err)
	}
	return nil
}

// redirect leads the line to another address. Connections that are open are cut.
func (l *line) redirect(upstream string) error {
	err := l.proxy.Update(&toxiproxy.Proxy{Listen: l.proxy.Listen, Upstream: upstream, Enabled: true})
	if err != nil {
		return fmt.Errorf("redirecting the line %s: %w", l.proxy.Name, err)
	}
	return nil
}

func (l *line) close() { l.proxy.Stop() }
