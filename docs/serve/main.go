// Serve serves the documentation locally, without a database, for its authors. `go tool task docs` runs it. It prints
// the address to stdout and everything else to stderr.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/signal"
	"syscall"
	"time"

	"roomsensor/docs"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		_, _ = fmt.Fprintln(os.Stderr, "docs:", err) // There is no better place to report it.
		os.Exit(1)
	}
}

// run serves until ctx ends. It prints the address as soon as it listens.
func run(ctx context.Context, args []string, out, log io.Writer) error {
	flags := flag.NewFlagSet("docs", flag.ContinueOnError)
	flags.SetOutput(log)
	listen := flags.String("addr", "127.0.0.1:0", "`ADDRESS` to listen on; port 0 means any free port")
	api := flags.String("api", "http://127.0.0.1:8080", "base `URL` of the API, without /v1")
	if err := flags.Parse(args); err != nil {
		return err //nolint:wrapcheck // It names the flag.
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", *listen)
	if err != nil {
		return fmt.Errorf("listening on the address of -addr: %w", err)
	}
	address := "http://" + listener.Addr().String() + "/docs"
	pages, err := handler(docs.Options{PublicURL: *api, DocsURL: address})
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	_, _ = fmt.Fprintln(out, address) // A caller that closed stdout does not need it.
	return serve(ctx, listener, pages)
}

// handler returns 405 for methods other than GET and HEAD, like the router of the API. It forwards to the API what the
// reference page sends.
func handler(o docs.Options) (http.Handler, error) {
	api, err := url.Parse(o.PublicURL)
	if err != nil {
		return nil, fmt.Errorf("reading the URL of the API: %w", err)
	}
	pages, err := docs.Handler(o)
	if err != nil {
		return nil, fmt.Errorf("rendering the pages: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /docs", pages)
	mux.Handle("GET /docs/", pages)
	mux.Handle("GET /favicon.ico", pages)
	mux.Handle("GET /robots.txt", pages)
	mux.Handle("/v1/", &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(api) }})
	return mux, nil
}

func serve(ctx context.Context, listener net.Listener, pages http.Handler) error {
	server := &http.Server{Handler: pages, ReadHeaderTimeout: 5 * time.Second}
	// The pages are in memory, so there is nothing to wait for.
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving: %w", err)
	}
	return nil
}
