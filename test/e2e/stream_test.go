package e2e_test

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"roomsensor/client"
	"roomsensor/internal/queue"
	"roomsensor/internal/roomsensor"
	"roomsensor/test/natstest"
)

// streamEnv is an env with a NATS server, into whose stream a test publishes uploads as they are.
type streamEnv struct {
	*env
	js    jetstream.JetStream
	units int
}

// newStreamEnv starts a NATS server, and no process yet.
func newStreamEnv(t *testing.T) *streamEnv {
	t.Helper()
	e := &streamEnv{env: newEnv(t)}
	e.settings["NATS_URL"] = natstest.New(t).URL
	conn, err := nats.Connect(e.settings["NATS_URL"])
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	e.js, err = jetstream.New(conn)
	require.NoError(t, err)
	return e
}

// newService starts the API and two workers.
func newService(t *testing.T) *streamEnv {
	t.Helper()
	e := newStreamEnv(t)
	e.apis = []*server{e.start("api")}
	for range 2 {
		e.start("ingest", "--no-receiver")
	}
	return e
}

func (e *streamEnv) stream() jetstream.Stream {
	e.t.Helper()
	stream, err := e.js.Stream(e.t.Context(), queue.StreamName)
	require.NoError(e.t, err)
	return stream
}

// settle waits until the workers have acknowledged every message of the stream.
func (e *streamEnv) settle() {
	e.t.Helper()
	e.settleWithin(patience)
}

func (e *streamEnv) settleWithin(limit time.Duration) {
	e.t.Helper()
	require.Eventually(e.t, func() bool {
		stream := e.stream()
		consumer, err := stream.Consumer(e.t.Context(), queue.ConsumerName)
		return err == nil && consumer.CachedInfo().AckFloor.Stream == stream.CachedInfo().State.LastSeq
	}, limit, 5*time.Millisecond)
}

// replayStream redelivers the whole stream to the workers.
func (e *streamEnv) replayStream() {
	e.t.Helper()
	e.command("stream", "replay")
	e.settle()
}

// newUnit creates a device with a unit that was always in it, in SQL because it is quicker than the command.
func (e *streamEnv) newUnit() (unit, device string) {
	e.t.Helper()
	e.units++
	unit = fmt.Sprint("dev:", e.units)
	return unit, value[string](e.env, `WITH d AS (INSERT INTO devices (team_id, hardware_id) VALUES ($1, $2) RETURNING id)
		INSERT INTO device_hardware (hardware_id, device_id) SELECT $2, id FROM d RETURNING device_id::text`, e.team, unit)
}

// publish stores a message in the stream. It returns its arrival, as the API prints it, and its sequence.
func (e *streamEnv) publish(unit, text string) (arrival string, sequence uint64) {
	e.t.Helper()
	ack, err := e.js.Publish(e.t.Context(), "uploads.-."+unit, []byte(text))
	require.NoError(e.t, err)
	msg, err := e.stream().GetMsg(e.t.Context(), ack.Sequence)
	require.NoError(e.t, err)
	return roomsensor.FormatTime(msg.Time.Truncate(time.Microsecond)), ack.Sequence
}

// publishReadings publishes an upload with more fields before its readings.
func (e *streamEnv) publishReadings(unit, more string, readings ...string) (arrival string) {
	e.t.Helper()
	arrival, _ = e.publish(unit, fmt.Sprintf(`{"hardware_id":%q,%s"readings":[%s]}`, unit, more, strings.Join(readings, ",")))
	return arrival
}

// day is the day of the measurements that reading returns.
var day = time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -3)

// reading returns a measurement at a time of day, with values such as `"lux":1`. Without values, its only metric is
// null.
func reading(clock, values string) string {
	return fmt.Sprintf(`{"measured_at":"%sT%sZ",%s}`, day.Format(time.DateOnly), clock, cmp.Or(values, `"lux":null`))
}

// served returns the readings of a device on that day, oldest first: the time of the bucket and the five values, with a
// dash for null.
func (e *streamEnv) served(device string) (lines []string) {
	e.t.Helper()
	for _, r := range e.api().readings(device, client.Between(day, day.AddDate(0, 0, 1))) {
		line := r.BucketAt.Format("15:04")
		for _, value := range []*float64{r.CO2PPM, r.TempC, r.HumidityPct, r.Lux, r.SPLDB} {
			if value == nil {
				line += " -"
			} else {
				line += " " + strconv.FormatFloat(*value, 'f', -1, 64)
			}
		}
		lines = append([]string{line}, lines...)
	}
	return lines
}

// storedReadings returns all rows of the table as text.
func (e *streamEnv) storedReadings() []string {
	e.t.Helper()
	found, err := e.sql.Query(e.t.Context(), `SELECT r::text FROM readings r ORDER BY device_id, bucket_at`)
	require.NoError(e.t, err)
	rows, err := pgx.CollectRows(found, pgx.RowTo[string])
	require.NoError(e.t, err)
	return rows
}
