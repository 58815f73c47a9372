package service_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/admin"
	"roomsensor/internal/config"
	"roomsensor/internal/process"
	"roomsensor/internal/queue"
	"roomsensor/internal/service"
	"roomsensor/schema"
	"roomsensor/test/dbtest"
	"roomsensor/test/natstest"
)

func TestIngestProcess(t *testing.T) {
	t.Parallel()
	e := newTestEnv(t)
	cfg := e.config()
	cfg.DatabaseURL = config.Secret((&dbtest.DB{URL: e.database}).As(t, schema.RoleWorker))
	r := startIngest(t, cfg)
	ops, receiver := r.address("ops"), r.address("receiver")
	r.awaitReady()
	status, body := e.upload(receiver, 0, 3)
	require.Equal(t, 202, status, body)
	require.JSONEq(t, `{"stored":3,"readings":3,"ignored_fields":[]}`, body)
	e.awaitStored(3)

	status, body = get(t, receiver+"/uploads")
	require.Equal(t, 405, status)
	require.Contains(t, body, `"doc_url":"https://docs.example/x/errors/method_not_allowed"`)
	_, body = get(t, ops+"/metrics")
	require.Contains(t, body, "roomsensor_ingest_uploads_total 3")
	require.Contains(t, body, "roomsensor_queue_stream_max_bytes 6.7108864e+07")

	r.awaitDatabase()
	require.NoError(t, r.end())
	require.Empty(t, r.warnings())
	require.NotContains(t, r.log.String(), e.key)
}

func TestReceiverReadiness(t *testing.T) {
	t.Parallel()
	e := newTestEnv(t)
	database, nats := newProxy(t, e.database), newProxy(t, e.nats.URL)
	cfg := e.config()
	cfg.DatabaseURL, cfg.NATSURL, cfg.NoWorker = config.Secret(database.URL), config.Secret(nats.URL), true
	database.Cut()
	r := startIngest(t, cfg)
	ops, receiver := r.address("ops"), r.address("receiver")
	awaitReadiness(t, ops, 503, `"name":"ingest keys","reason":"were not read yet`)
	awaitReadiness(t, ops, 503, `"name":"queue","reason":"has no stream of uploads yet`)
	e.createStream()
	database.Restore()
	r.awaitReady()

	database.Cut()
	status, body := e.upload(receiver, 1, 1)
	require.Equal(t, 202, status, body)
	require.Zero(t, e.stored(), "a receiver without a worker stores nothing")

	nats.Cut()
	awaitReadiness(t, ops, 503, `"name":"queue","reason":"does not answer at 127.0.0.1:`)
	status, body = e.upload(receiver, 2, 1)
	require.Equal(t, 503, status)
	require.Contains(t, body, "overloaded")
	_, body = get(t, ops+"/readyz")
	require.NotContains(t, body, `"name":"ingest keys"`, "a receiver that knows its keys does not need the database")

	nats.Restore()
	awaitReadiness(t, ops, 200, "ready")
	status, body = e.upload(receiver, 2, 1)
	require.Equal(t, 202, status, body)
	require.NoError(t, r.end())
}

// A worker whose database refuses all uploads keeps them in the queue, says so, and stores them once it can.
func TestWorkerReadiness(t *testing.T) {
	t.Parallel()
	e := newTestEnv(t)
	sql, err := pgx.Connect(t.Context(), e.database)
	require.NoError(t, err)
	defer func() { require.NoError(t, sql.Close(context.WithoutCancel(t.Context()))) }()
	_, err = sql.Exec(t.Context(), `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
		$$ BEGIN RAISE EXCEPTION 'refused'; END $$;
		CREATE TRIGGER refuse BEFORE INSERT ON readings FOR EACH ROW EXECUTE FUNCTION refuse()`)
	require.NoError(t, err)
	r := startIngest(t, e.config())
	ops, receiver := r.address("ops"), r.address("receiver")
	r.awaitReady()
	status, body := e.upload(receiver, 0, 25)
	require.Equal(t, 202, status, body)
	awaitReadiness(t, ops, 503, `"name":"worker","reason":"holds uploads`)
	_, body = get(t, ops+"/metrics")
	require.Contains(t, body, "roomsensor_ingest_holding 1")
	awaitLog(r, "holding refused uploads") // The worker is not ready a moment before it logs why.

	_, err = sql.Exec(t.Context(), "DROP TRIGGER refuse ON readings")
	require.NoError(t, err)
	e.awaitStored(25)
	awaitReadiness(t, ops, 200, "ready")
	require.NoError(t, r.end())
}

func TestIngestWaitsForQueue(t *testing.T) {
	t.Parallel()
	e := newTestEnv(t)
	e.nats.Shutdown()
	r := startIngest(t, e.config())
	ops, receiver := r.address("ops"), r.address("receiver")
	awaitReadiness(t, ops, 503, `"name":"queue","reason":"does not answer at 127.0.0.1:`)
	status, _ := e.upload(receiver, 0, 1)
	require.Equal(t, 503, status, "it answers before the queue is available")

	e.nats.Restart(t)
	r.awaitReady()
	status, body := e.upload(receiver, 0, 1)
	require.Equal(t, 202, status, body)
	e.awaitStored(1)
	require.NoError(t, r.end())
}

// A worker that finds another stream than the recorded one is not ready until an operator confirms it.
func TestStreamConfirm(t *testing.T) {
	t.Parallel()
	e := newTestEnv(t)
	r := startIngest(t, e.config())
	r.awaitReady()
	require.NoError(t, r.end())

	nc, err := nats.Connect(e.nats.URL)
	require.NoError(t, err)
	defer nc.Close()
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	require.NoError(t, js.DeleteStream(t.Context(), queue.StreamName))
	r = startIngest(t, e.config())
	ops := r.address("ops")
	receiver := r.address("receiver")
	awaitReadiness(t, ops, 503, `"name":"queue","reason":"lost its stream of uploads`)
	status, _ := e.upload(receiver, 0, 1)
	require.Equal(t, 503, status)
	_, body := get(t, ops+"/metrics")
	require.Contains(t, body, "roomsensor_queue_stream_losses_total 1")
	require.Contains(t, r.log.String(), `"level":"error"`)

	cfg := e.config()
	o, err := admin.Open(t.Context(), config.Database{DatabaseURL: config.Secret(e.database)})
	require.NoError(t, err)
	defer o.Close()
	_, err = o.ConfirmStream(t.Context(), cfg.Queue, cfg.Stream)
	require.NoError(t, err)
	r.awaitReady()
	status, body = e.upload(receiver, 0, 1)
	require.Equal(t, 202, status, body)
	e.awaitStored(1)
	require.NoError(t, r.end())
}

func TestIngestStopsWhileWaiting(t *testing.T) {
	t.Parallel()
	cfg := (&testEnv{database: "postgres://user:secret@127.0.0.1:1/x", nats: &natstest.Server{URL: "nats://user:secret@127.0.0.1:1"}}).config()
	for _, noReceiver := range []bool{false, true} {
		cfg.NoReceiver = noReceiver
		r := startIngest(t, cfg)
		r.address("ops")
		if !noReceiver {
			r.address("receiver")
		}
		require.NoError(t, r.end())
		require.Empty(t, r.bound, "a worker has no public listener")
		require.NotContains(t, r.log.String(), "secret")
	}
}

func TestIngestStartErrors(t *testing.T) {
	t.Parallel()
	e := &testEnv{database: "postgres://127.0.0.1:1/x", nats: &natstest.Server{URL: "nats://127.0.0.1:1"}}
	var problem *config.ValueError
	bad := e.config()
	bad.NATSURL = "queue"
	require.ErrorAs(t, service.RunIngest(t.Context(), bad, process.Options{}), &problem)
	require.Equal(t, "nats-url", problem.Flag)

	taken, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, taken.Close()) }()
	for _, name := range []string{"ops", "receiver"} {
		inUse := e.config()
		if name == "ops" {
			inUse.OpsAddr = taken.Addr().String()
		} else {
			inUse.IngestAddr = taken.Addr().String()
		}
		require.ErrorContains(t, service.RunIngest(t.Context(), inUse, process.Options{}), "for "+name+":")
	}
}

// A receiver accepts both keys during the overlap of a rotation, and only the new one after it.
func TestIngestKeyRotation(t *testing.T) {
	t.Parallel()
	e := newTestEnv(t)
	cfg := e.config()
	cfg.NoWorker = true
	e.createStream()
	r := startIngest(t, cfg)
	r.address("ops")
	receiver := r.address("receiver")
	r.awaitReady()
	status, body := e.upload(receiver, 0, 1) // The receiver has the key in memory.
	require.Equal(t, 202, status, body)

	o, err := admin.Open(t.Context(), cfg.Database)
	require.NoError(t, err)
	defer o.Close()
	keys, err := o.IngestKeys(t.Context(), e.team)
	require.NoError(t, err)
	oldKey := e.key
	rotated, err := o.RotateIngestKey(t.Context(), keys.Data[0].KeyID, 24*time.Hour)
	require.NoError(t, err)
	for _, key := range []string{oldKey, rotated.Key} {
		e.key = key
		status, body = e.upload(receiver, 1, 1)
		require.Equal(t, 202, status, body)
	}
	_, err = o.RotateIngestKey(t.Context(), keys.Data[0].KeyID, time.Millisecond)
	require.NoError(t, err)
	e.key = oldKey
	require.Eventually(t, func() bool {
		status, body = e.upload(receiver, 2, 1)
		return status == 401
	}, waitTimeout, 50*time.Millisecond)
	require.Contains(t, body, `"code":"ingest_key_expired"`)
	e.key = rotated.Key
	status, body = e.upload(receiver, 3, 1)
	require.Equal(t, 202, status, body)
	require.NoError(t, r.end())
}
