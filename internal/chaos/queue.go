package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"roomsensor/internal/procs"
	"roomsensor/internal/queue"
)

// queueServer is nats-server.
type queueServer struct {
	*program
	url string

	conn *nats.Conn // the trial's own, straight to the server
	js   jetstream.JetStream
}

// startQueue starts nats-server, which listens on one address however often it is killed.
func (w *world) startQueue(ctx context.Context) error {
	log, err := w.log(natsServer)
	if err != nil {
		return err
	}
	streams := filepath.Join(w.dir, "streams")
	if err := os.MkdirAll(streams, 0o750); err != nil {
		return fmt.Errorf("making a place for the streams: %w", err)
	}
	server, err := procs.StartNATS(ctx, w.programs.NATSServer, streams, log)
	if err != nil {
		return err
	}
	w.queue = &queueServer{program: adopt(natsServer, server, w.died), url: server.URL}
	w.push(w.queue.stop)
	return w.connectQueue()
}

// adopt makes a program of a server that runs.
func adopt(name string, server *procs.NATS, died func(string)) *program {
	p := &program{name: name, died: died, process: server.Process}
	p.launch = func(ctx context.Context) (*procs.Process, error) {
		err := server.Restart(ctx)
		return server.Process, err
	}
	p.group.Go(func() { p.watch(server.Process) })
	return p
}

const reconnectWait = 200 * time.Millisecond

// connectQueue opens the trial's own connection, as a device on trusted ground has one: what cannot be sent at once
// fails at once.
func (w *world) connectQueue() (err error) {
	w.queue.conn, err = nats.Connect(w.queue.url, nats.Name("roomsensor chaos"), nats.MaxReconnects(-1),
		nats.ReconnectWait(reconnectWait), nats.ReconnectBufSize(-1), nats.RetryOnFailedConnect(true))
	if err != nil {
		return fmt.Errorf("connecting to nats-server: %w", err)
	}
	w.push(func() error { w.queue.conn.Close(); return nil })
	w.queue.js, err = jetstream.New(w.queue.conn, jetstream.WithDefaultTimeout(answerTimeout))
	if err != nil {
		return fmt.Errorf("opening JetStream: %w", err)
	}
	return nil
}

// answerTimeout bounds one question to nats-server.
const answerTimeout = 5 * time.Second

// consumer asks for the state of the workers' consumer.
func (q *queueServer) consumer(ctx context.Context) (*jetstream.ConsumerInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	consumer, err := q.js.Consumer(ctx, queue.StreamName, queue.ConsumerName)
	if err != nil {
		return nil, fmt.Errorf("asking for the consumer: %w", err)
	}
	return consumer.CachedInfo(), nil
}

// narrow makes the queue wait for workers no longer than a trial wants. Whatever declares the consumer again widens it.
func (q *queueServer) narrow(ctx context.Context, ackWait time.Duration) error {
	if ackWait == 0 {
		return nil
	}
	var failed error
	for deadline := time.Now().Add(startPatience); time.Now().Before(deadline); {
		info, err := q.consumer(ctx)
		if err == nil {
			config := info.Config
			config.AckWait = ackWait
			bounded, cancel := context.WithTimeout(ctx, answerTimeout)
			_, err = q.js.UpdateConsumer(bounded, queue.StreamName, config)
			cancel()
		}
		if err == nil {
			return nil
		}
		failed = err
		if err := pause(ctx, reconnectWait); err != nil {
			return errors.Join(err, failed)
		}
	}
	return fmt.Errorf("narrowing the consumer: %w", failed)
}
