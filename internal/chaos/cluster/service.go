package cluster

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"roomsensor/internal/procs"
)

// How many processes of each kind there are.
const (
	apiCount      = 2
	receiverCount = 2
	workerCount   = 4
)

func apiMember(i int) string      { return fmt.Sprintf("api-%d", i+1) }
func receiverMember(i int) string { return fmt.Sprintf("receiver-%d", i+1) }
func workerMember(i int) string   { return fmt.Sprintf("worker-%d", i+1) }

func serviceMembers() (names []string) {
	for i := range apiCount {
		names = append(names, apiMember(i))
	}
	for i := range receiverCount {
		names = append(names, receiverMember(i))
	}
	for i := range workerCount {
		names = append(names, workerMember(i))
	}
	return names
}

// The ports of the image.
const (
	apiPort      = "8080"
	receiverPort = "8081"
	opsPort      = "9080"
)

// startService starts all processes, and puts a balancer before those that clients reach.
func (w *world) startService(ctx context.Context) (err error) {
	var apis, receivers []*backend
	for i := range apiCount {
		b, err := w.startProcess(ctx, apiMember(i), apiPort, "api")
		if err != nil {
			return err
		}
		apis = append(apis, b)
	}
	for i := range receiverCount {
		b, err := w.startProcess(ctx, receiverMember(i), receiverPort, "ingest", "--no-worker")
		if err != nil {
			return err
		}
		receivers = append(receivers, b)
	}
	for i := range workerCount {
		if _, err := w.startProcess(ctx, workerMember(i), "", "ingest", "--no-receiver"); err != nil {
			return err
		}
	}
	if w.apis, err = w.balance(ctx, apis); err != nil {
		return err
	}
	if w.receivers, err = w.balance(ctx, receivers); err != nil {
		return err
	}
	w.trial.API, w.trial.Receiver = w.apis.address, w.receivers.address
	return nil
}

func (w *world) balance(ctx context.Context, backends []*backend) (*balancer, error) {
	b, err := startBalancer(ctx, backends)
	if err == nil {
		w.push(b.close)
	}
	return b, err
}

// startProcess starts a process of roomsensor as docker-compose.yml does, with all servers of database and queue.
func (w *world) startProcess(ctx context.Context, member, port string, command ...string) (*backend, error) {
	b := &backend{}
	p := &plan{
		member: member, image: w.options.Images.Service, command: command, ports: map[string]string{},
		options: []string{
			"--read-only", "--cap-drop", "ALL", "--env", "DATABASE_URL=" + w.databaseURL, "--env", "NATS_URL=" + w.queueURL,
			"--env", "STREAM_REPLICAS=" + strconv.Itoa(queueSize), "--env", "STREAM_MAX_BYTES=2GiB",
		},
	}
	for inside, outside := range map[string]*string{opsPort: &b.ops, port: &b.address} {
		if inside == "" {
			continue
		}
		address, err := procs.FreeAddress()
		if err != nil {
			return nil, err
		}
		*outside, p.ports[inside] = address, address
	}
	err := w.start(ctx, p)
	b.member, w.ops[member] = w.members[member], b.ops
	return b, err
}

// serviceReady is nil when every process says that it is ready.
func (w *world) serviceReady(ctx context.Context) error {
	client := &http.Client{Timeout: lookTimeout, Transport: &http.Transport{DisableKeepAlives: true}}
	var waiting []string
	for _, member := range serviceMembers() {
		if !procs.Answers(ctx, client, procs.ReadyURL(w.ops[member])) {
			waiting = append(waiting, member)
		}
	}
	if len(waiting) > 0 {
		return fmt.Errorf("%s: not ready", strings.Join(waiting, ", "))
	}
	return nil
}

// stopPatience is what a process of ours gets to end in order.
const stopPatience = 30 * time.Second

// stop tells a process to end, and waits for it.
func (c *container) stop(ctx context.Context) error {
	c.down = true
	_, err := engine(ctx, "stop", "--time", strconv.Itoa(int(stopPatience.Seconds())), c.name)
	return err
}
