package demo

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"syscall"

	"roomsensor/internal/process"
)

// maxPorts is how many ports are tried, beginning with the given one.
const maxPorts = 50

// listenNear listens on an address or, if it is in use, on the next free port above it.
func listenNear(ctx context.Context, address string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, process.Refusef("%q is not an address to listen on, such as 127.0.0.1:8080.", address)
	}
	first, err := strconv.Atoi(port)
	if err != nil {
		return nil, process.Refusef("%q is not an address to listen on, such as 127.0.0.1:8080.", address)
	}
	for n := range maxPorts {
		listener, err := process.ListenTCP(ctx, net.JoinHostPort(host, strconv.Itoa(first+n)))
		if err == nil || !errors.Is(err, syscall.EADDRINUSE) {
			return listener, err
		}
	}
	return nil, process.Refusef("%s and the %d ports above it are in use. Give another address.", address, maxPorts-1)
}

// reserve listens near an address, reports if it is another one, and returns the address at which a process finds the
// listener.
func (d *demo) reserve(ctx context.Context, name, address string) (bound string, err error) {
	listener, err := listenNear(ctx, address)
	if err != nil {
		return "", err
	}
	d.OnClose("the listener of "+name, func(context.Context) error {
		if err := listener.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			return fmt.Errorf("closing: %w", err)
		}
		return nil
	})
	bound = listener.Addr().String()
	d.listeners[bound] = listener
	d.printMoved(name, address, bound)
	return bound, nil
}

// printMoved reports that something listens on another address than the given one, unless any free port was asked for.
func (d *demo) printMoved(name, address, bound string) {
	if _, port, err := net.SplitHostPort(address); err == nil && port != "0" && bound != address {
		d.printf("%s is in use: %s listens on %s instead.", address, name, bound)
	}
}

// listener returns the listener that was reserved for an address.
func (d *demo) listener(ctx context.Context, address string) (net.Listener, error) {
	if listener, ok := d.listeners[address]; ok {
		return listener, nil
	}
	return process.ListenTCP(ctx, address)
}

// freePort returns a port of 127.0.0.1, or the next free one above it, and reports if it is another one. name is what
// will listen on it.
func (d *demo) freePort(ctx context.Context, name string, port int) (int, error) {
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	listener, err := listenNear(ctx, address)
	if err != nil {
		return 0, err
	}
	if err := listener.Close(); err != nil {
		return 0, fmt.Errorf("looking for a free port: %w", err)
	}
	d.printMoved(name, address, listener.Addr().String())
	return listener.Addr().(*net.TCPAddr).Port, nil //nolint:forcetypeassert // It listened on TCP.
}
