package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"roomsensor/internal/natstest"
	"roomsensor/internal/openapitest"
	"roomsensor/internal/procs"
	"roomsensor/internal/queue"
	"roomsensor/internal/roomsensor"
)

// plant is receiver and worker as processes of their own, on addresses that stay.
type plant struct {
	*operator
	nats     *natstest.Server
	sql      *pgxpool.Pool
	teams    []string
	key      string // that uploads
	receiver string // address
	client   *http.Client
}

func newPlant(t *testing.T, units ...string) *plant {
	t.Helper()
	p := &plant{operator: newOperator(t), nats: natstest.New(t), receiver: freeAddress(t)}
	p.environment["NATS_URL"] = p.nats.URL
	p.teams = []string{p.team()}
	for _, unit := range units {
		p.device(p.teams[0], unit)
	}
	p.key = p.id("key", "ingest-key", "create", "--team", p.teams[0])
	var err error
	p.sql, err = pgxpool.New(t.Context(), p.environment["DATABASE_URL"])
	require.NoError(t, err)
	t.Cleanup(p.sql.Close)
	transport := &http.Transport{MaxIdleConnsPerHost: 100}
	p.client = &http.Client{Transport: openapitest.Transport(transport)}
	t.Cleanup(transport.CloseIdleConnections)
	return p
}

// start runs a process of the program until the test ends, and waits until it is ready.
func (p *plant) start(args ...string) *procs.Process {
	p.t.Helper()
	return p.startAt(freeAddress(p.t), args...)
}

// startAt is start with an address for the health checks.
func (p *plant) startAt(ops string, args ...string) *procs.Process {
	p.t.Helper()
	self, err := os.Executable()
	require.NoError(p.t, err)
	log := &output{}
	environment := []string{asProgram + "=1", "OPS_ADDR=" + ops, "INGEST_ADDR=" + p.receiver, "LOG_LEVEL=warn"}
	for name, value := range p.environment {
		environment = append(environment, name+"="+value)
	}
	process, err := procs.Start(procs.Command{Path: self, Args: args, Log: log, Env: environment})
	require.NoError(p.t, err)
	p.t.Cleanup(func() {
		process.Kill()
		if p.t.Failed() {
			p.t.Log(args, log.String())
		}
	})
	ctx, cancel := context.WithTimeout(p.t.Context(), bearable)
	defer cancel()
	require.NoError(p.t, process.AwaitReady(ctx, ops), log.String())
	return process
}

// post tells whether the receiver confirmed an upload.
func (p *plant) post(upload string) bool {
	url := "http://" + p.receiver + "/uploads"
	request, err := http.NewRequestWithContext(p.t.Context(), http.MethodPost, url, strings.NewReader(upload))
	if err != nil {
		return false
	}
	request.Header.Set("Authorization", "Bearer "+p.key)
	response, err := p.client.Do(request)
	if err != nil {
		return false
	}
	_ = response.Body.Close()
	return response.StatusCode == http.StatusAccepted
}

// awaitSettled waits until workers have acknowledged every message.
func (p *plant) awaitSettled() jetstream.Stream {
	p.t.Helper()
	return p.awaitSettledWithin(bearable)
}

func (p *plant) awaitSettledWithin(most time.Duration) jetstream.Stream {
	p.t.Helper()
	uploads := stream(p.t, p.nats.URL)
	require.Eventually(p.t, func() bool {
		consumer, err := uploads.Consumer(p.t.Context(), queue.ConsumerName)
		return err == nil && consumer.CachedInfo().AckFloor.Stream == uploads.CachedInfo().State.LastSeq
	}, most, 20*time.Millisecond)
	return uploads
}

// count is the number that a query gives.
func (p *plant) count(sql string, args ...any) (n int) {
	p.t.Helper()
	require.NoError(p.t, p.sql.QueryRow(p.t.Context(), sql, args...).Scan(&n))
	return n
}

// sender posts uploads of one unit, a bucket each. It never says the same again, so that whatever a worker writes twice
// came to it twice.
type sender struct {
	unit      string
	confirmed []int // the buckets of uploads that were answered with 202
}

var firstBucket = time.Date(2020, time.January, 1, 0, 0, 0, 0, time.UTC)

// padding makes an upload too large to be stored ahead of a backlog, and then once more in its turn.
var padding = strings.Repeat("x", 5<<10)

func (s *sender) run(p *plant, over <-chan struct{}, confirmed chan<- struct{}) {
	for n := 0; ; n++ {
		at := firstBucket.Add(time.Duration(n) * roomsensor.BucketLength)
		if p.post(fmt.Sprintf(`{"hardware_id":%q,"padding":%q,"readings":[{"measured_at":%q,"co2_ppm":%d}]}`,
			s.unit, padding, roomsensor.FormatTime(at), n%1000)) {
			s.confirmed = append(s.confirmed, n)
			select {
			case confirmed <- struct{}{}:
			default:
			}
		}
		select {
		case <-over:
			return
		case <-time.After(time.Millisecond):
		}
	}
}

// Receiver and worker are told to end under load, 20 times: each exits in time, with nothing left running; no upload
// that was answered with 202 is lost, and none is written twice, as one that was stored is acknowledged.
func TestSIGTERMUnderLoadLosesAndRepeatsNothing(t *testing.T) {
	t.Parallel()
	const rounds, senders = 20, 8
	list := make([]sender, senders)
	var units []string
	for i := range list {
		list[i].unit = fmt.Sprint("dev:", i+1)
		units = append(units, list[i].unit)
	}
	p := newPlant(t, units...)
	p.recordWrites()
	over, confirmed := make(chan struct{}), make(chan struct{})
	var load sync.WaitGroup
	for i := range list {
		load.Go(func() { list[i].run(p, over, confirmed) })
	}
	for range rounds {
		both := []*procs.Process{p.start("ingest", "--no-worker"), p.start("ingest", "--no-receiver")}
		for range 5 * senders {
			<-confirmed
		}
		var group errgroup.Group
		for _, process := range both {
			group.Go(func() error {
				_, err := process.Stop(20 * time.Second)
				return err
			})
		}
		require.NoError(t, group.Wait())
	}
	close(over)
	load.Wait()
	p.start("ingest", "--no-receiver")
	p.requireStored(list)
}

// recordWrites has the database note every reading that a committed transaction wrote, also one that changed nothing.
func (p *plant) recordWrites() {
	p.t.Helper()
	_, err := p.sql.Exec(p.t.Context(), `CREATE TABLE written (device_id uuid, bucket_at timestamptz);
		CREATE FUNCTION note_write() RETURNS trigger LANGUAGE plpgsql AS
			$$ BEGIN INSERT INTO written VALUES (NEW.device_id, NEW.bucket_at); RETURN NEW; END $$;
		CREATE TRIGGER note_write BEFORE INSERT ON readings FOR EACH ROW EXECUTE FUNCTION note_write()`)
	require.NoError(p.t, err)
}

// requireStored waits until everything is settled and compares the table with what was confirmed.
func (p *plant) requireStored(list []sender) {
	p.t.Helper()
	uploads := p.awaitSettled()
	for _, s := range list {
		require.NotEmpty(p.t, s.confirmed)
		require.Equal(p.t, len(s.confirmed), p.count(`SELECT count(*) FROM unnest($2::integer[]) n
			JOIN devices d ON d.hardware_id = $1
			JOIN readings r ON r.device_id = d.id AND r.bucket_at = $3::timestamptz + n * interval '5 minutes'
				AND r.co2_ppm = n % 1000`, s.unit, s.confirmed, firstBucket), s.unit)
	}
	readings := p.count("SELECT count(*) FROM readings")
	require.Equal(p.t, readings, p.count("SELECT count(*) FROM written"), "none was written twice")
	require.Equal(p.t, uploads.CachedInfo().State.LastSeq, uint64(readings), "each upload is one reading")
}
