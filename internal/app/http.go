package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
)

// serveHTTP serves until the process is told to end, and then finishes what is
// under way. What is not finished in time is cancelled.
func serveHTTP(l *lifecycle, name string, server *http.Server, listener net.Listener) {
	server.BaseContext = func(net.Listener) context.Context { return l.work }
	l.push(name, func(ctx context.Context) error {
		if err := server.Shutdown(ctx); err != nil {
			return errors.Join(fmt.Errorf("finishing requests: %w", err), server.Close())
		}
		return nil
	})
	l.run(name, func(context.Context) error {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serving: %w", err)
		}
		return nil
	})
}
