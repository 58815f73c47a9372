package processes

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

// Toxic is a disturbance of a connection, in the form of Toxiproxy's API.
type Toxic struct {
	Type string `json:"type"`
	// Stream is upstream from the process to the server, and downstream from the server to the process.
	Stream     string         `json:"stream"`
	Attributes map[string]int `json:"attributes"`
}

// toxics are the types: latency, a black hole, a reset and low bandwidth.
var toxics = []Toxic{
	{"latency", "downstream", map[string]int{"latency": 400, "jitter": 300}}, // milliseconds
	{"timeout", "downstream", map[string]int{"timeout": 0}},                  // until it is removed
	{"reset_peer", "downstream", map[string]int{"timeout": 0}},               // at the first byte
	{"bandwidth", "downstream", map[string]int{"rate": 24}},                  // kilobytes per second
}

func (t *Toxic) String() string { return t.Type + " " + t.Stream }

// The servers at the other end of connections.
const (
	toDatabase = "database"
	toQueue    = "queue"
)

var servers = []string{toDatabase, toQueue}

// proxy is a Toxiproxy proxy in this process.
type proxy struct {
	proxy *toxiproxy.Proxy
	url   string // of the server, with the address of the proxy
}

// silence turns off the log that Toxiproxy writes to stderr.
var silence = sync.OnceFunc(func() { zlog.Logger = zerolog.Nop() })

// newProxy starts a proxy to the host of a server's URL.
func newProxy(name, server string) (*proxy, error) {
	silence()
	u, err := url.Parse(server)
	if err != nil {
		return nil, fmt.Errorf("starting the proxy %s: %w", name, err)
	}
	control := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	p := &proxy{proxy: toxiproxy.NewProxy(control, name, "127.0.0.1:0", u.Host)}
	if err := p.proxy.Start(); err != nil {
		return nil, fmt.Errorf("starting the proxy %s: %w", name, err)
	}
	u.Host = p.proxy.Listen
	p.url = u.String()
	return p, nil
}

// addToxic adds a toxic to open and new connections.
func (p *proxy) addToxic(t Toxic) error {
	encoded, err := json.Marshal(t)
	if err == nil {
		_, err = p.proxy.Toxics.AddToxicJson(bytes.NewReader(encoded))
	}
	if err != nil {
		return fmt.Errorf("adding a toxic to %s: %w", p.proxy.Name, err)
	}
	return nil
}

// removeTimeout is for the data that a toxic still holds. After it the connections are cut.
const removeTimeout = 10 * time.Second

// removeToxic removes a toxic. Connections with a black hole are closed: data in it is lost.
func (p *proxy) removeToxic(t Toxic) error {
	removed := make(chan error, 1)
	go func() { removed <- p.proxy.Toxics.RemoveToxic(context.Background(), t.Type+"_"+t.Stream) }()
	timer := time.NewTimer(removeTimeout)
	defer timer.Stop()
	var err error
	select {
	case err = <-removed:
	case <-timer.C:
		p.proxy.Stop()
		err = <-removed
		if err == nil {
			err = p.proxy.Start()
		}
	}
	if err != nil {
		return fmt.Errorf("removing a toxic from %s: %w", p.proxy.Name, err)
	}
	return nil
}

// redirect changes the address of the server and cuts open connections.
func (p *proxy) redirect(upstream string) error {
	err := p.proxy.Update(&toxiproxy.Proxy{Listen: p.proxy.Listen, Upstream: upstream, Enabled: true})
	if err != nil {
		return fmt.Errorf("redirecting %s: %w", p.proxy.Name, err)
	}
	return nil
}

func (p *proxy) close() { p.proxy.Stop() }
