package cluster

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/http/httputil"
	"net/url"
	"sync"
	"time"

	"roomsensor/internal/retry"
	"roomsensor/test/proctest"
)

// backend is a process behind a balancer.
type backend struct {
	member       *container
	address, ops string // on this machine
	ready        bool
}

// balancer distributes requests over backends in turn, like a load balancer in front of a deployment. It prefers ready
// backends, and uses any backend if none is ready.
type balancer struct {
	address  string
	server   *http.Server
	stop     context.CancelFunc
	group    sync.WaitGroup
	mu       sync.Mutex
	backends []*backend
	next     int
}

// backendHeader names the member that answered a request.
const backendHeader = "X-Backend"

const (
	// checkInterval is the time between two readiness checks of a backend.
	checkInterval = 500 * time.Millisecond
	// dialTimeout is for a process on this machine.
	dialTimeout = 2 * time.Second
)

// startBalancer listens on a free address.
func startBalancer(ctx context.Context, backends []*backend) (*balancer, error) {
	address, err := proctest.FreeAddress()
	if err != nil {
		return nil, err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, err //nolint:wrapcheck // It names the address.
	}
	b := &balancer{address: address, backends: backends}
	b.server = &http.Server{Handler: b.proxy(), ReadHeaderTimeout: dialTimeout}
	checking, stop := context.WithCancel(context.WithoutCancel(ctx))
	b.stop = stop
	for _, back := range backends {
		b.group.Go(func() { b.check(checking, back) })
	}
	b.group.Go(func() { _ = b.server.Serve(listener) }) // It ends with close.
	return b, nil
}

// close breaks all connections.
func (b *balancer) close(context.Context) error {
	b.stop()
	err := b.server.Close()
	b.group.Wait()
	return err //nolint:wrapcheck // It names the address.
}

// proxy forwards requests. If a backend fails, the connection of the client is broken too, without an answer or in the
// middle of one.
func (b *balancer) proxy() http.Handler {
	forward := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: "http", Host: "backend"}) // The address is chosen by dial.
			r.Out.Host = r.In.Host
		},
		Transport:     &http.Transport{DisableKeepAlives: true, DisableCompression: true, DialContext: b.dial},
		FlushInterval: -1,
		ErrorHandler:  func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		trace := &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
			if back := b.backendAt(info.Conn.RemoteAddr().String()); back != nil {
				w.Header().Set(backendHeader, back.member.member)
			}
		}}
		forward.ServeHTTP(w, r.WithContext(httptrace.WithClientTrace(r.Context(), trace)))
	})
}

var errNoBackend = errors.New("no backend accepts the connection")

// dial connects to the first backend that accepts the connection.
func (b *balancer) dial(ctx context.Context, network, _ string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: dialTimeout}
	for _, back := range b.candidates() {
		if conn, err := dialer.DialContext(ctx, network, back.address); err == nil {
			return conn, nil
		}
	}
	return nil, errNoBackend
}

func (b *balancer) check(ctx context.Context, back *backend) {
	client := &http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	retry.Every(ctx, checkInterval, func(ctx context.Context) {
		ready := proctest.Answers(ctx, client, proctest.ReadyURL(back.ops))
		b.mu.Lock()
		defer b.mu.Unlock()
		back.ready = ready
	})
}

// candidates returns the backends in the order in which they are tried: in turn, ready ones first.
func (b *balancer) candidates() (list []*backend) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.next++
	for _, ready := range []bool{true, false} {
		for i := range b.backends {
			if back := b.backends[(b.next+i)%len(b.backends)]; back.ready == ready {
				list = append(list, back)
			}
		}
	}
	return list
}

func (b *balancer) backendAt(address string) *backend {
	for _, back := range b.backends {
		if back.address == address {
			return back
		}
	}
	return nil
}

// backendOf returns the backend that sent a response with a header; nil if it is unknown.
func (b *balancer) backendOf(header http.Header) *backend {
	for _, back := range b.backends {
		if back.member.member == header.Get(backendHeader) {
			return back
		}
	}
	return nil
}
