package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"roomsensor/internal/queue"
	"roomsensor/test/harness"
	"roomsensor/test/proctest"
)

// queueMembers are the NATS servers. Each has a replica of the stream.
var queueMembers = []string{"nats-1", "nats-2", "nats-3"}

// natsConf is deploy/nats.conf with cluster peers.
const natsConf = `server_name: %s
listen: 0.0.0.0:4222
jetstream {
  store_dir: /data
  max_file_store: 8GB
  sync_interval: always
}
cluster {
  name: roomsensor
  listen: 0.0.0.0:6222
  routes: [%s]
}
`

// startQueue starts the NATS servers and connects to them.
func (e *env) startQueue(ctx context.Context) error {
	var routes, outside, within []string
	for _, member := range queueMembers {
		routes = append(routes, "nats://"+member+":6222")
	}
	for _, member := range queueMembers {
		address, err := proctest.FreeAddress()
		if err != nil {
			return err
		}
		err = e.start(ctx, &spec{
			member: member, image: e.options.Images.Queue, options: []string{"--volume", "/data"},
			ports:   map[string]string{"4222": address},
			files:   []file{{"/nats.conf", fmt.Sprintf(natsConf, member, strings.Join(routes, ", "))}},
			command: []string{"-c", "/nats.conf"},
		})
		if err != nil {
			return err
		}
		outside = append(outside, "nats://"+address)
		within = append(within, "nats://"+member+":4222")
	}
	e.queueURL = strings.Join(within, ",")
	return e.connectQueue(strings.Join(outside, ","))
}

func (e *env) connectQueue(url string) error {
	// The servers advertise addresses on the private network, which this machine must not use.
	conn, js, err := harness.Connect(url, nats.IgnoreDiscoveredServers(),
		nats.PingInterval(queuePing), nats.MaxPingsOutstanding(2))
	if err != nil {
		return err
	}
	e.OnClose(func(context.Context) error { conn.Close(); return nil })
	e.service.QueueURL, e.service.JS = url, js
	return nil
}

// queuePing detects a disconnected server within a few seconds.
const queuePing = 2 * time.Second

var errNoLeader = errors.New("the stream has no leader")

// leader returns the member that leads the stream.
func (e *env) leader(ctx context.Context) (*container, error) {
	info, err := e.stream(ctx)
	if err != nil {
		return nil, err
	}
	if info.Cluster == nil || e.members[info.Cluster.Leader] == nil {
		return nil, errNoLeader
	}
	return e.members[info.Cluster.Leader], nil
}

func (e *env) stream(ctx context.Context) (*jetstream.StreamInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	stream, err := e.service.JS.Stream(ctx, queue.StreamName)
	if err != nil {
		return nil, fmt.Errorf("reading the stream: %w", err)
	}
	return stream.CachedInfo(), nil
}

// checkQueue returns nil if all replicas of the stream and the consumer are current.
func (e *env) checkQueue(ctx context.Context) error {
	stream, err := e.stream(ctx)
	if err != nil {
		return err
	}
	consumer, err := e.service.Consumer(ctx)
	if err != nil {
		return err
	}
	return errors.Join(checkReplicas("stream", stream.Cluster), checkReplicas("consumer", consumer.Cluster))
}

func checkReplicas(what string, c *jetstream.ClusterInfo) error {
	if c == nil || c.Leader == "" || len(c.Replicas) != len(queueMembers)-1 {
		return fmt.Errorf("the %s has no leader and %d followers", what, len(queueMembers)-1)
	}
	for _, r := range c.Replicas {
		if r.Offline || !r.Current {
			return fmt.Errorf("the replica of the %s on %s is not current", what, r.Name)
		}
	}
	return nil
}
