package queue

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// ErrNoStream means that the server has no stream of uploads.
var ErrNoStream = errors.New("there is no stream of uploads")

// Info describes the stream and its consumers, for operators.
type Info struct {
	Created        time.Time // to the microsecond
	Replicas       int
	Messages       uint64
	Bytes          uint64
	MaxBytes       int64 // -1 without a limit
	Oldest, Newest time.Time
	Consumers      []ConsumerInfo // by name
	Settings       error          // ErrSettings if the stream or its consumer would lose uploads
	Clock          time.Time      // of the server
	Servers        int            // of the cluster that hold the stream; 0 without a cluster
	Behind         []string       // those of them that are offline or miss messages
}

// ConsumerInfo describes a consumer of the stream.
type ConsumerInfo struct {
	Name           string
	Waiting        uint64    // messages that were never delivered
	Unacknowledged int       // messages that were delivered and not settled
	Redelivered    int       // those of them that were delivered more than once
	Oldest         time.Time // when the stream stored the oldest message of both kinds; zero if there is none
}

// Inspect returns the state of the stream and of all its consumers, or ErrNoStream. Unlike other methods it creates
// no consumer, and takes every stream of the name.
func (q *Queue) Inspect(ctx context.Context) (info Info, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	stream, err := q.js.Stream(ctx, StreamName)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return info, ErrNoStream
	}
	if err != nil {
		return info, q.withCause(fmt.Errorf("reading the stream: %w", err))
	}
	found := stream.CachedInfo()
	info = Info{
		Created: found.Created.UTC().Truncate(time.Microsecond), Replicas: found.Config.Replicas,
		Messages: found.State.Msgs, Bytes: found.State.Bytes, MaxBytes: found.Config.MaxBytes,
	}
	if info.Messages > 0 {
		info.Oldest, info.Newest = found.State.FirstTime.UTC(), found.State.LastTime.UTC()
	}
	info.Clock, info.Settings = found.TimeStamp.UTC(), checkStream(&found.Config)
	if found.Cluster != nil && found.Cluster.Name != "" {
		info.Servers = 1 + len(found.Cluster.Replicas)
		for _, peer := range found.Cluster.Replicas {
			if peer.Offline || !peer.Current {
				info.Behind = append(info.Behind, peer.Name)
			}
		}
	}
	list := stream.ListConsumers(ctx)
	for consumer := range list.Info() {
		oldest, err := oldestUnacknowledged(ctx, stream, consumer)
		if err != nil {
			return info, err
		}
		if consumer.Name == ConsumerName {
			info.Settings = cmp.Or(info.Settings, checkConsumer(&consumer.Config))
			if latest, err := stream.Info(ctx); err == nil { // After the consumer, so that it is not behind.
				info.Settings = cmp.Or(info.Settings, checkPosition(latest, consumer))
			}
		}
		info.Consumers = append(info.Consumers, ConsumerInfo{
			Name: consumer.Name, Waiting: consumer.NumPending, Unacknowledged: consumer.NumAckPending,
			Redelivered: consumer.NumRedelivered, Oldest: oldest,
		})
	}
	if err := list.Err(); err != nil {
		return info, fmt.Errorf("listing the consumers of the stream: %w", err)
	}
	slices.SortFunc(info.Consumers, func(a, b ConsumerInfo) int { return strings.Compare(a.Name, b.Name) })
	return info, nil
}

// Certificate returns the certificate that the server presented, or nil without TLS.
func (q *Queue) Certificate() *x509.Certificate {
	state, err := q.nc.TLSConnectionState()
	if err != nil || len(state.PeerCertificates) == 0 {
		return nil
	}
	return state.PeerCertificates[0]
}
