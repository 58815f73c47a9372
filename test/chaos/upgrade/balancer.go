package upgrade

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync"
	"syscall"
	"time"

	"roomsensor/internal/retry"
	"roomsensor/test/proctest"
)

// backend is a process behind a balancer.
type backend struct {
	version      string
	address, ops string
	ready        bool // as the balancer saw it last
}

// balancer distributes requests over processes in turn, as a load balancer does that polls /readyz: it uses ready ones
// only, and another one if a process refuses the connection. Nothing else is sent again.
type balancer struct {
	address string
	served  func(served)
	server  *http.Server
	stop    context.CancelFunc
	group   sync.WaitGroup

	mu       sync.Mutex
	backends []*backend
	next     int
}

// served is what became of a request.
type served struct {
	path    string
	version string // empty if no process accepted the connection
	took    time.Duration
	failure string // empty for an answer below 500
}

const (
	// checkInterval is the time between two readiness checks of a process.
	checkInterval = 250 * time.Millisecond
	// dialTimeout is for a process on this machine.
	dialTimeout = 2 * time.Second
)

// startBalancer listens on a free address. It calls served after each request.
func startBalancer(ctx context.Context, served func(served)) (*balancer, error) {
	address, err := proctest.FreeAddress()
	if err != nil {
		return nil, err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, err //nolint:wrapcheck // It names the address.
	}
	b := &balancer{address: address, served: served}
	b.server = &http.Server{Handler: b.proxy(), ReadHeaderTimeout: dialTimeout}
	checking, stop := context.WithCancel(context.WithoutCancel(ctx))
	b.stop = stop
	b.group.Go(func() { b.check(checking) })
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

// add adds a ready process.
func (b *balancer) add(back *backend) {
	b.mu.Lock()
	defer b.mu.Unlock()
	back.ready = true
	b.backends = append(b.backends, back)
}

// remove removes a process.
func (b *balancer) remove(back *backend) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.backends = slices.DeleteFunc(b.backends, func(other *backend) bool { return other == back })
}

// proxy forwards requests, each on a new connection. If a process breaks one, that of the client is broken too.
func (b *balancer) proxy() http.Handler {
	transport := &http.Transport{DisableKeepAlives: true, DisableCompression: true, DialContext: b.dial}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		result, began := served{path: r.URL.Path}, time.Now()
		finished := false
		forward := &httputil.ReverseProxy{
			Rewrite: func(r *httputil.ProxyRequest) {
				r.SetURL(&url.URL{Scheme: "http", Host: "backend"}) // The address is chosen by dial.
				r.Out.Host = r.In.Host
			},
			Transport:     transport,
			FlushInterval: -1,
			ModifyResponse: func(response *http.Response) error {
				if response.StatusCode >= http.StatusInternalServerError {
					result.failure = response.Status
				}
				return nil
			},
			ErrorHandler: func(_ http.ResponseWriter, _ *http.Request, err error) {
				result.failure = err.Error()
				panic(http.ErrAbortHandler)
			},
		}
		trace := &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
			result.version = b.versionAt(info.Conn.RemoteAddr().String())
		}}
		defer func() {
			result.took = time.Since(began)
			switch {
			case finished: // The client may have left since.
			case r.Context().Err() != nil:
				result.failure = "" // The client left.
			case result.failure == "":
				result.failure = "the response is incomplete"
			}
			b.served(result)
		}()
		forward.ServeHTTP(w, r.WithContext(httptrace.WithClientTrace(r.Context(), trace)))
		finished = true
	})
}

var errNoBackend = errors.New("no ready process accepts the connection")

// dial connects to the first process that does not refuse the connection.
func (b *balancer) dial(ctx context.Context, network, _ string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: dialTimeout}
	for _, address := range b.candidates() {
		conn, err := dialer.DialContext(ctx, network, address)
		if !errors.Is(err, syscall.ECONNREFUSED) {
			return conn, err //nolint:wrapcheck // It names the address.
		}
	}
	return nil, errNoBackend
}

// check polls the readiness of all processes.
func (b *balancer) check(ctx context.Context) {
	client := &http.Client{Timeout: dialTimeout, Transport: &http.Transport{DisableKeepAlives: true}}
	retry.Every(ctx, checkInterval, func(ctx context.Context) {
		b.mu.Lock()
		backends := slices.Clone(b.backends)
		b.mu.Unlock()
		for _, back := range backends {
			ready := proctest.Answers(ctx, client, proctest.ReadyURL(back.ops))
			b.mu.Lock()
			back.ready = ready
			b.mu.Unlock()
		}
	})
}

// candidates returns the addresses of the ready processes in the order in which they are tried.
func (b *balancer) candidates() (addresses []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.next++
	for i := range b.backends {
		if back := b.backends[(b.next+i)%len(b.backends)]; back.ready {
			addresses = append(addresses, back.address)
		}
	}
	return addresses
}

func (b *balancer) versionAt(address string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, back := range b.backends {
		if back.address == address {
			return back.version
		}
	}
	return ""
}
