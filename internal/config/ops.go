package config

// Ops is the ops address of a process that runs.
type Ops struct {
	OpsAddr string `default:"127.0.0.1:9080" help:"Ops address of the process." placeholder:"HOST:PORT" setting:""`
}

// Validate checks the address's form.
func (c *Ops) Validate() error { return check("ops-addr", c.OpsAddr, address) }
