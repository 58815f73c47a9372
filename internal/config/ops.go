package config

import "net"

// Ops is the ops address of a process that runs.
type Ops struct {
	OpsAddr string `default:"127.0.0.1:9080" help:"Ops address of the process." placeholder:"HOST:PORT" setting:""`
}

// Validate checks the address's form.
func (c *Ops) Validate() error { return check("ops-addr", c.OpsAddr, address) }

// Local is an address at which the process is reached from its own machine.
func (c *Ops) Local() string {
	host, port, err := net.SplitHostPort(c.OpsAddr)
	if err != nil {
		return c.OpsAddr
	}
	return net.JoinHostPort(localHost(host), port)
}

// localHost reaches a listener of this machine, also one that listens on every
// address.
func localHost(host string) string {
	if ip := net.ParseIP(host); host == "" || (ip != nil && ip.IsUnspecified()) {
		return "localhost"
	}
	return host
}
