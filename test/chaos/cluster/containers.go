package cluster

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// runDocker runs a docker command and returns its output.
func runDocker(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "docker", args...) //nolint:gosec // The arguments are the trial's.
	var stderr strings.Builder
	cmd.Stderr = &stderr
	stdout, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("docker %s: %w: %s", strings.Join(args[:min(3, len(args))], " "), err,
			strings.TrimSpace(stderr.String()))
	}
	return strings.TrimSpace(string(stdout)), nil
}

// network is the private network of a trial. Its members have fixed addresses, like machines: requests to a dead or
// disconnected member get no answer, not even an error.
type network struct {
	name    string
	dir     string // for files that are copied into containers
	hosts   []string
	members map[string]netip.Addr
}

// firstHost is the offset of the first member's address. Docker assigns the lower ones.
const firstHost = 32

// newNetwork creates a network in a free subnet, with an address for each member. It may return a network and an error.
func newNetwork(ctx context.Context, name, dir string, members []string) (*network, error) {
	if _, err := runDocker(ctx, "network", "create", name); err != nil {
		return nil, err
	}
	n := &network{name: name, dir: dir, members: map[string]netip.Addr{}}
	// Fixed addresses need a network that was created with a subnet.
	subnet, err := runDocker(ctx, "network", "inspect", "--format", "{{(index .IPAM.Config 0).Subnet}}", name)
	if err != nil {
		return n, err
	}
	if err := n.remove(ctx); err != nil {
		return n, err
	}
	if _, err := runDocker(ctx, "network", "create", "--subnet", subnet, name); err != nil {
		return nil, err
	}
	return n, n.assign(subnet, members)
}

func (n *network) assign(subnet string, members []string) error {
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
	_, err := runDocker(ctx, "network", "rm", n.name)
	return err
}

// file is a file that is copied into a container before it starts.
type file struct{ path, text string }

// container runs a member of the cluster.
type container struct {
	network *network
	member  string
	name    string // of the container
	// ports maps ports of the container to addresses on this machine, which survive a restart.
	ports map[string]string
	// down is set while a fault has stopped or disconnected the container.
	down bool
}

// spec describes a container.
type spec struct {
	member  string
	image   string
	options []string          // of docker create
	ports   map[string]string // see container
	files   []file
	command []string
}

// start creates and starts a container.
func (n *network) start(ctx context.Context, s *spec) (*container, error) {
	c := &container{network: n, member: s.member, name: n.name + "-" + s.member, ports: s.ports}
	args := []string{
		"create", "--name", c.name, "--hostname", c.member,
		"--network", n.name, "--ip", n.members[c.member].String(),
	}
	args = append(append(args, n.hosts...), s.options...)
	for inside, outside := range s.ports {
		args = append(args, "--publish", outside+":"+inside)
	}
	if _, err := runDocker(ctx, append(append(args, s.image), s.command...)...); err != nil {
		return nil, err
	}
	for _, f := range s.files {
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
	_, err := runDocker(ctx, "cp", here, c.name+":"+f.path)
	return err
}

// kill sends SIGKILL. The files of the container remain.
func (c *container) kill(ctx context.Context) error {
	c.down = true
	_, err := runDocker(ctx, "kill", c.name)
	return err
}

// restart starts the container with the same address and files.
func (c *container) restart(ctx context.Context) error {
	_, err := runDocker(ctx, "start", c.name)
	c.down = false
	return err
}

// disconnect removes the container from the network. It keeps running, and no connection is closed.
func (c *container) disconnect(ctx context.Context) error {
	c.down = true
	_, err := runDocker(ctx, "network", "disconnect", c.network.name, c.name)
	return err
}

// reconnect adds the container to the network again, with the same address.
func (c *container) reconnect(ctx context.Context) error {
	address := c.network.members[c.member].String()
	_, err := runDocker(ctx, "network", "connect", "--ip", address, c.network.name, c.name)
	c.down = false
	return err
}

// isRunning reports whether the container is running.
func (c *container) isRunning(ctx context.Context) (bool, error) {
	state, err := runDocker(ctx, "inspect", "--format", "{{.State.Running}}", c.name)
	return state == "true", err
}

// remove removes the container and its volumes.
func (c *container) remove(ctx context.Context) error {
	_, err := runDocker(ctx, "rm", "--force", "--volumes", c.name)
	return err
}

// saveLog writes the output of the container to a file.
func (c *container) saveLog(ctx context.Context, dir string) error {
	log, err := os.Create(filepath.Join(dir, c.member+".log")) //nolint:gosec // The directory is that of the trial.
	if err != nil {
		return fmt.Errorf("creating a log file: %w", err)
	}
	defer func() { _ = log.Close() }()
	cmd := exec.CommandContext(ctx, "docker", "logs", "--timestamps", c.name) //nolint:gosec // See runDocker.
	cmd.Stdout, cmd.Stderr = log, log
	return cmd.Run() //nolint:wrapcheck // It names the program.
}

// stopTimeout is for a process to end after SIGTERM.
const stopTimeout = 30 * time.Second

// stop sends SIGTERM and waits until the container has ended.
func (c *container) stop(ctx context.Context) error {
	c.down = true
	_, err := runDocker(ctx, "stop", "--time", strconv.Itoa(int(stopTimeout.Seconds())), c.name)
	return err
}
