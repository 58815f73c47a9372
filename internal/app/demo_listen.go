package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"syscall"
)

// portsTried is how many ports above a taken one are tried.
const portsTried = 50

// listenNear listens on an address, or, where it is taken, on the next free
// port above it.
func listenNear(ctx context.Context, address string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, refusef("%q is not an address to listen on, such as 127.0.0.1:8080.", address)
	}
	first, err := strconv.Atoi(port)
	if err != nil {
		return nil, refusef("%q is not an address to listen on, such as 127.0.0.1:8080.", address)
	}
	for n := range portsTried {
		listener, err := listenTCP(ctx, net.JoinHostPort(host, strconv.Itoa(first+n)))
		if err == nil || !errors.Is(err, syscall.EADDRINUSE) {
			return listener, err
		}
	}
	return nil, refusef("%s and the %d ports above it are taken. Give another address.", address, portsTried-1)
}

// reserve listens near an address and says so where it is not the one. The
// address that it returns is where a process finds the listener.
func (d *demo) reserve(ctx context.Context, l *lifecycle, what, address string) (bound string, err error) {
	listener, err := listenNear(ctx, address)
	if err != nil {
		return "", err
	}
	l.push("the listener of "+what, func(context.Context) error {
		if err := listener.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			return fmt.Errorf("closing: %w", err)
		}
		return nil
	})
	bound = listener.Addr().String()
	d.listeners[bound] = listener
	if _, port, err := net.SplitHostPort(address); err == nil && port != "0" && bound != address {
		d.say("%s is taken: %s listens on %s instead.", address, what, bound)
	}
	return bound, nil
}

// freePort is a port of 127.0.0.1, or the next one that is free.
func freePort(ctx context.Context, port int) (int, error) {
	listener, err := listenNear(ctx, net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return 0, err
	}
	port = listener.Addr().(*net.TCPAddr).Port //nolint:forcetypeassert // It listens on TCP.
	if err := listener.Close(); err != nil {
		return 0, fmt.Errorf("looking for a free port: %w", err)
	}
	return port, nil
}
