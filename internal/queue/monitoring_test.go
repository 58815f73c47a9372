package queue_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/queue"
)

// jsz is the part of the monitoring response that KEDA's scaler for NATS JetStream reads (2.8 to 2.19). It finds the
// account, the stream and the consumer by name, and adds num_pending and num_ack_pending. Without the consumer it uses
// the last sequence of the stream.
type jsz struct {
	Accounts []struct {
		Name    string `json:"name"`
		Streams []struct {
			Name  string `json:"name"`
			State struct {
				LastSequence *uint64 `json:"last_seq"`
			} `json:"state"`
			Consumers []struct {
				Stream     string `json:"stream_name"`
				Name       string `json:"name"`
				Pending    *int   `json:"num_pending"`
				AckPending *int   `json:"num_ack_pending"`
			} `json:"consumer_detail"`
		} `json:"stream_detail"`
	} `json:"account_details"`
}

// startMonitored starts a server with a monitoring port, and returns the URL that the scaler reads.
func startMonitored(t *testing.T) (url, monitor string) {
	t.Helper()
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, HTTPHost: "127.0.0.1", HTTPPort: server.RANDOM_PORT,
		JetStream: true, StoreDir: t.TempDir(), NoSigs: true,
	})
	require.NoError(t, err)
	s.Start()
	t.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	require.True(t, s.ReadyForConnections(patience))
	return s.ClientURL(), "http://" + s.MonitorAddr().String() + "/jsz?acc=$G&consumers=true&config=true"
}

// lag returns the numbers that the scaler reads. Every field must exist under its name: the scaler reads a missing one
// as 0 and would never scale.
func lag(t *testing.T, monitor string) (pending, unacknowledged int) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}
	got, err := client.Get(monitor)
	require.NoError(t, err)
	var response jsz
	require.NoError(t, json.NewDecoder(got.Body).Decode(&response))
	require.NoError(t, got.Body.Close())
	require.Len(t, response.Accounts, 1)
	require.Equal(t, "$G", response.Accounts[0].Name)
	require.Len(t, response.Accounts[0].Streams, 1)
	stream := response.Accounts[0].Streams[0]
	require.Equal(t, "UPLOADS", stream.Name)
	require.NotNil(t, stream.State.LastSequence)
	for _, consumer := range stream.Consumers {
		if consumer.Name == "ingest" {
			require.Equal(t, "UPLOADS", consumer.Stream)
			require.NotNil(t, consumer.Pending)
			require.NotNil(t, consumer.AckPending)
			return *consumer.Pending, *consumer.AckPending
		}
	}
	require.FailNow(t, "the response has no consumer")
	return 0, 0
}

// Autoscalers read the backlog from the server itself (docs/operate/scaling.md), without the priority lane.
func TestMonitoringPort(t *testing.T) {
	t.Parallel()
	url, monitor := startMonitored(t)
	nc, err := queue.Connect(url, t.Name(), zerolog.New(t.Output()))
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	require.Eventually(t, nc.IsConnected, patience, time.Millisecond)
	q, js := open(t, nc, small)
	require.NoError(t, q.Declare(t.Context()))
	_, err = q.Publish(t.Context(), messages("a", "b", "c", "d", "e"))
	require.NoError(t, err)
	lane, err := q.ConsumePriorityLane(t.Context(), time.Now().Add(-time.Hour))
	require.NoError(t, err)
	defer lane.Stop()
	require.Eventually(t, func() bool {
		pending, unacknowledged := lag(t, monitor)
		return pending == 5 && unacknowledged == 0
	}, patience, 10*time.Millisecond)

	consumer, err := js.Consumer(t.Context(), queue.StreamName, queue.ConsumerName)
	require.NoError(t, err)
	batch, err := consumer.Fetch(2, jetstream.FetchMaxWait(patience))
	require.NoError(t, err)
	for range batch.Messages() { // A worker holds them until the commit.
	}
	require.NoError(t, batch.Error())
	require.Eventually(t, func() bool {
		pending, unacknowledged := lag(t, monitor)
		return pending == 3 && unacknowledged == 2
	}, patience, 10*time.Millisecond)
}
