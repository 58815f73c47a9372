package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"roomsensor/internal/chaos/trial"
	"roomsensor/internal/procs"
	"roomsensor/internal/queue"
)

// queueSize is how many servers the queue has, and how many copies each message.
const queueSize = 3

func queueMember(i int) string { return fmt.Sprintf("nats-%d", i+1) }

// natsConf is that of deploy/nats.conf, with peers.
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

// startQueue starts the servers and connects to them.
func (w *world) startQueue(ctx context.Context) error {
	var routes, outside, within []string
	for i := range queueSize {
		routes = append(routes, "nats://"+inside(queueMember(i), "6222"))
	}
	for i := range queueSize {
		address, err := procs.FreeAddress()
		if err != nil {
			return err
		}
		err = w.start(ctx, &plan{
			member: queueMember(i), image: w.options.Images.Queue, options: []string{"--volume", "/data"},
			ports:   map[string]string{"4222": address},
			files:   []file{{"/nats.conf", fmt.Sprintf(natsConf, queueMember(i), strings.Join(routes, ", "))}},
			command: []string{"-c", "/nats.conf"},
		})
		if err != nil {
			return err
		}
		outside = append(outside, "nats://"+address)
		within = append(within, "nats://"+inside(queueMember(i), "4222"))
	}
	w.queueURL = strings.Join(within, ",")
	return w.connectQueue(strings.Join(outside, ","))
}

func (w *world) connectQueue(url string) error {
	// The servers tell the addresses by which members reach them, which this machine must not use.
	conn, js, err := trial.Connect(url, nats.IgnoreDiscoveredServers(),
		nats.PingInterval(queuePing), nats.MaxPingsOutstanding(2))
	if err != nil {
		return err
	}
	w.push(func(context.Context) error { conn.Close(); return nil })
	w.trial.QueueURL, w.trial.JS = url, js
	return nil
}

// queuePing notices a server that was cut off within a few seconds.
const queuePing = 2 * time.Second

var errNoLeader = errors.New("the stream has no leader")

// leader is the member that leads the stream.
func (w *world) leader(ctx context.Context) (*container, error) {
	info, err := w.stream(ctx)
	if err != nil {
		return nil, err
	}
	if info.Cluster == nil || w.members[info.Cluster.Leader] == nil {
		return nil, errNoLeader
	}
	return w.members[info.Cluster.Leader], nil
}

func (w *world) stream(ctx context.Context) (*jetstream.StreamInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	stream, err := w.trial.JS.Stream(ctx, queue.StreamName)
	if err != nil {
		return nil, fmt.Errorf("looking at the stream: %w", err)
	}
	return stream.CachedInfo(), nil
}

// queueWhole is nil when stream and consumer have all their copies, and all of them are current.
func (w *world) queueWhole(ctx context.Context) error {
	stream, err := w.stream(ctx)
	if err != nil {
		return err
	}
	consumer, err := w.trial.Consumer(ctx)
	if err != nil {
		return err
	}
	return errors.Join(complete("stream", stream.Cluster), complete("consumer", consumer.Cluster))
}

func complete(what string, c *jetstream.ClusterInfo) error {
	if c == nil || c.Leader == "" || len(c.Replicas) != queueSize-1 {
		return fmt.Errorf("the %s has no leader and %d followers", what, queueSize-1)
	}
	for _, r := range c.Replicas {
		if r.Offline || !r.Current {
			return fmt.Errorf("the copy of the %s on %s is behind", what, r.Name)
		}
	}
	return nil
}
