// Serve serves the pages of the documentation on this machine, without a database: for who writes them.
// `go tool task docs` calls it. The address goes to stdout, everything else to stderr.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
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
		_, _ = fmt.Fprintln(os.Stderr, "docs:", err) // There is nowhere else to say it.
		os.Exit(1)
	}
}

// run serves until ctx ends. It prints the address once it listens.
func run(ctx context.Context, args []string, out, log io.Writer) error {
	flags := flag.NewFlagSet("docs", flag.ContinueOnError)
	flags.SetOutput(log)
	address := flags.String("addr", "127.0.0.1:0", "`ADDRESS` to listen on; port 0 is any that is free")
	api := flags.String("api", "http://127.0.0.1:8080", "`URL` of the API that the pages name, without /v1")
	if err := flags.Parse(args); err != nil {
		return err //nolint:wrapcheck // It names the flag.
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", *address)
	if err != nil {
		return fmt.Errorf("listening: %w", err)
	}
	url := "http://" + listener.Addr().String() + "/docs"
	pages, err := handler(docs.Options{PublicURL: *api, DocsURL: url})
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	_, _ = fmt.Fprintln(out, url) // Whoever closed stdout knows the address.
	return serve(ctx, listener, pages)
}

// handler refuses other methods, as the router of the API does.
func handler(o docs.Options) (http.Handler, error) {
	pages, err := docs.Handler(o)
	if err != nil {
		return nil, fmt.Errorf("making the pages: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /docs", pages)
	mux.Handle("GET /docs/", pages)
	return mux, nil
}

func serve(ctx context.Context, listener net.Listener, pages http.Handler) error {
	server := &http.Server{Handler: pages, ReadHeaderTimeout: 5 * time.Second}
	// Pages are in memory: there is nothing to wait for.
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving: %w", err)
	}
	return nil
}
