package cluster

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// engine runs a command of Docker's and returns what it prints.
func engine(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "docker", args...) //nolint:gosec // The arguments are the trial's.
	var complaint strings.Builder
	cmd.Stderr = &complaint
	said, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("docker %s: %w: %s", strings.Join(args[:min(3, len(args))], " "), err,
			strings.TrimSpace(complaint.String()))
	}
	return strings.TrimSpace(string(said)), nil
}

// network is a private network of a trial. Its members have fixed addresses, as machines do: one that is dead or cut
// off does not answer, and nobody says so.
type network struct {
	name    string
	dir     string // for files on their way into containers
	hosts   []string
	members map[string]netip.Addr
}

// firstHost is the first address that members get; the ones below are the bridge's and those of Docker's choice.
const firstHost = 32

// newNetwork makes a network where Docker has room for one, with an address for each member. It may be there although
// there is an error.
func newNetwork(ctx context.Context, name, dir string, members []string) (*network, error) {
	if _, err := engine(ctx, "network", "create", name); err != nil {
		return nil, err
	}
	n := &network{name: name, dir: dir, members: map[string]netip.Addr{}}
	// Members can have fixed addresses only where the subnet was given.
	subnet, err := engine(ctx, "network", "inspect", "--format", "{{(index .IPAM.Config 0).Subnet}}", name)
	if err != nil {
		return n, err
	}
	if err := n.remove(ctx); err != nil {
		return n, err
	}
	if _, err := engine(ctx, "network", "create", "--subnet", subnet, name); err != nil {
		return nil, err
	}
	return n, n.number(subnet, members)
}

func (n *network) number(subnet string, members []string) error {
	prefix, err := netip.ParsePrefix(subnet)
	if err != nil {
		return fmt.Errorf("reading the subnet of the network: %w", err)
	}
	at := prefix.Addr()
	for range firstHost {
		at = at.Next()
	}
	for _, m := range members {
		n.members[m] = at
		n.hosts = append(n.hosts, "--add-host", m+":"+at.String())
		at = at.Next()
	}
	return nil
}

func (n *network) remove(ctx context.Context) error {
	_, err := engine(ctx, "network", "rm", n.name)
	return err
}

// file is a file that a container gets before it starts.
type file struct{ path, text string }

// container is a member of the cluster.
type container struct {
	network *network
	member  string
	name    string // on this machine
	// ports maps ports of the container to addresses of this machine, which it keeps when it starts again.
	ports map[string]string
	// down is set while the container is meant not to run, or not to be reached.
	down bool
}

// plan is what a container is made of.
type plan struct {
	member  string
	image   string
	options []string          // of docker create
	ports   map[string]string // see container
	files   []file
	command []string
}

// start makes a container and starts it.
func (n *network) start(ctx context.Context, p *plan) (*container, error) {
	c := &container{network: n, member: p.member, name: n.name + "-" + p.member, ports: p.ports}
	args := []string{
		"create", "--name", c.name, "--hostname", c.member,
		"--network", n.name, "--ip", n.members[c.member].String(),
	}
	args = append(append(args, n.hosts...), p.options...)
	for inside, outside := range p.ports {
		args = append(args, "--publish", outside+":"+inside)
	}
	if _, err := engine(ctx, append(append(args, p.image), p.command...)...); err != nil {
		return nil, err
	}
	for _, f := range p.files {
		if err := c.put(ctx, f); err != nil {
			return c, err
		}
	}
	return c, c.restart(ctx)
}

func (c *container) put(ctx context.Context, f file) error {
	here := filepath.Join(c.network.dir, c.member+"-"+filepath.Base(f.path))
	if err := os.WriteFile(here, []byte(f.text), 0o644); err != nil { //nolint:gosec // The container's user reads it.
		return fmt.Errorf("writing a file for a container: %w", err)
	}
	_, err := engine(ctx, "cp", here, c.name+":"+f.path)
	return err
}

// kill is kill -9. What the container holds on disk stays.
func (c *container) kill(ctx context.Context) error {
	c.down = true
	_, err := engine(ctx, "kill", c.name)
	return err
}

// restart starts the container, on the same address and the same files as before.
func (c *container) restart(ctx context.Context) error {
	_, err := engine(ctx, "start", c.name)
	c.down = false
	return err
}

// cut takes the container off the network. It runs on, and nobody tells it or the others.
func (c *container) cut(ctx context.Context) error {
	c.down = true
	_, err := engine(ctx, "network", "disconnect", c.network.name, c.name)
	return err
}

// join puts the container back, with the address that it had.
func (c *container) join(ctx context.Context) error {
	address := c.network.members[c.member].String()
	_, err := engine(ctx, "network", "connect", "--ip", address, c.network.name, c.name)
	c.down = false
	return err
}

// runs reports whether the container runs.
func (c *container) runs(ctx context.Context) (bool, error) {
	said, err := engine(ctx, "inspect", "--format", "{{.State.Running}}", c.name)
	return said == "true", err
}

// remove ends the container and removes it with its volumes.
func (c *container) remove(ctx context.Context) error {
	_, err := engine(ctx, "rm", "--force", "--volumes", c.name)
	return err
}

// saveLog writes what the container printed.
func (c *container) saveLog(ctx context.Context, dir string) error {
	log, err := os.Create(filepath.Join(dir, c.member+".log")) //nolint:gosec // The directory is that of the trial.
	if err != nil {
		return fmt.Errorf("making a log: %w", err)
	}
	defer func() { _ = log.Close() }()
	cmd := exec.CommandContext(ctx, "docker", "logs", "--timestamps", c.name) //nolint:gosec // See engine.
	cmd.Stdout, cmd.Stderr = io.Writer(log), io.Writer(log)
	return cmd.Run() //nolint:wrapcheck // It names the program.
}

// inside is an address of a member as the others reach it.
func inside(member, port string) string { return net.JoinHostPort(member, port) }
