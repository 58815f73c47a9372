package demo

import (
	"context"
	"errors"
	"net"
	"strconv"
	"syscall"

	"roomsensor/internal/config"
	"roomsensor/internal/process"
)

// maxPorts is how many ports are tried, beginning with the given one.
const maxPorts = 50

// listenNear listens on an address or, if it is in use, on the next free port above it, and reports that. name is what
// will listen there.
func (d *demo) listenNear(ctx context.Context, name, address string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(address)
	first, portErr := strconv.Atoi(port)
	if err != nil || portErr != nil {
		return nil, process.Refusef("%q is not an address to listen on, such as 127.0.0.1:8080.", address)
	}
	for n := range maxPorts {
		listener, err := process.ListenTCP(ctx, net.JoinHostPort(host, strconv.Itoa(first+n)))
		if errors.Is(err, syscall.EADDRINUSE) {
			continue
		}
		if err == nil && n > 0 {
			d.printf("%s is in use: %s listens on %s instead.", address, name, listener.Addr())
		}
		return listener, err
	}
	return nil, process.Refusef("%s and the %d ports above it are in use. Give another address.", address, maxPorts-1)
}

// configure configures the processes, with the defaults and addresses that it reserves.
func (d *demo) configure(ctx context.Context) error {
	d.api, d.ingest = config.Defaults[config.API](), config.Defaults[config.Ingest]()
	d.dashboard, d.notify = config.Defaults[config.Dashboard](), config.Defaults[config.Notify]()
	for _, a := range []struct {
		name, address string
		bound         *string
	}{
		{"the API", d.options.APIAddr, &d.api.APIAddr},
		{"the ops listener of the API", d.options.APIOpsAddr, &d.api.OpsAddr},
		{"the receiver", d.options.IngestAddr, &d.ingest.IngestAddr},
		{"the ops listener of ingest", d.options.IngestOpsAddr, &d.ingest.OpsAddr},
		{"the dashboard", d.options.DashboardAddr, &d.dashboard.DashboardAddr},
		{"the ops listener of the dashboard", d.options.DashboardOpsAddr, &d.dashboard.OpsAddr},
		{"the ops listener of notify", d.options.NotifyOpsAddr, &d.notify.OpsAddr},
	} {
		listener, err := d.listenNear(ctx, a.name, a.address)
		if err != nil {
			return err
		}
		closing := process.Closing(func() { _ = listener.Close() }) // Its process may have closed it.
		d.OnClose("the listener of "+a.name, closing)
		*a.bound = listener.Addr().String()
		d.listeners[*a.bound] = listener
	}
	d.ingest.Site = d.api.Site // Errors of the receiver link to pages that the API serves.
	d.ingest.StreamMaxBytes = maxStreamBytes
	d.dashboard.PublicURL, d.dashboard.IngestURL = d.api.Public(d.api.APIAddr), "http://"+d.ingest.IngestAddr
	d.notify.DashboardSite = d.dashboard.DashboardSite
	return nil
}

// listener returns the listener that was reserved for an address of a process.
func (d *demo) listener(ctx context.Context, address string) (net.Listener, error) {
	if listener, ok := d.listeners[address]; ok {
		return listener, nil
	}
	return process.ListenTCP(ctx, address)
}
