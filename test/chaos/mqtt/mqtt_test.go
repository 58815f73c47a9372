package mqtt

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"roomsensor/internal/admin"
	"roomsensor/internal/config"
	"roomsensor/internal/process"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/service"
	"roomsensor/test/conformance"
	"roomsensor/test/dbtest"
	"roomsensor/test/mqtttest"
	"roomsensor/test/natstest"
	"roomsensor/test/proctest"
)

const (
	units   = 200
	senders = 8 // at the same time
	// perFault is how many messages are acknowledged between two faults.
	perFault = 75
	patience = time.Minute
)

// trial is a service, a broker and what was sent.
type trial struct {
	t        *testing.T
	database string
	program  string
	env      []string
	source   string
	broker   *mqtttest.Mosquitto
	proxy    *proctest.Proxy // between mqtt and the broker
	mqtt     *proctest.Process
	log      proctest.Output
	sent     atomic.Int64 // messages, with repetitions
	sending  sync.RWMutex // held by each sender
}

// TestMQTTKills runs the trial with both versions of MQTT.
func TestMQTTKills(t *testing.T) { //nolint:paralleltest // The second trial would slow down the first one.
	for _, protocol := range []string{"5", "3"} {
		t.Run("protocol "+protocol, func(t *testing.T) { newTrial(t).run(protocol) })
	}
}

func newTrial(t *testing.T) *trial {
	t.Helper()
	conformance.NeedsMachine(t, "mosquitto")
	r := &trial{t: t, database: dbtest.New(t).URL, broker: mqtttest.NewMosquitto(t)}
	nats := natstest.New(t)
	var err error
	r.program, err = proctest.Build(t.Context(), t.TempDir(), proctest.Roomsensor)
	require.NoError(t, err)
	r.proxy, err = proctest.NewProxy(t.Context(), r.broker.Address())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.proxy.Close()) })
	r.env = []string{
		"DATABASE_URL=" + r.database, "NATS_URL=" + nats.URL, "MQTT_URL=" + r.proxy.URL, "OPS_ADDR=127.0.0.1:0",
	}
	r.register()
	r.startWorker(nats.URL)
	return r
}

// register creates the devices and the source.
func (r *trial) register() {
	r.t.Helper()
	o, err := admin.Open(r.t.Context(), config.Database{DatabaseURL: config.Secret(r.database)})
	require.NoError(r.t, err)
	defer o.Close()
	team, err := o.CreateTeam(r.t.Context(), "Team")
	require.NoError(r.t, err)
	t, err := o.FindTeamIfNamed(r.t.Context(), &team.ID)
	require.NoError(r.t, err)
	for unit := range units {
		_, err := o.CreateDevice(r.t.Context(), roomsensor.NewDevice{TeamID: *t, HardwareID: unitName(unit), Sampling: "mean"})
		require.NoError(r.t, err)
	}
	s, err := o.CreateSource(r.t.Context(), roomsensor.Source{TeamID: *t, Name: "Zigbee", Format: "zigbee2mqtt"},
		func(string) string { return "" })
	require.NoError(r.t, err)
	r.source = s.SourceID
}

func unitName(unit int) string { return fmt.Sprintf("0x%016x", unit+1) }

// startWorker runs a worker in this process until the test ends.
func (r *trial) startWorker(nats string) {
	r.t.Helper()
	cfg := config.Defaults[config.Ingest]()
	cfg.DatabaseURL, cfg.NATSURL = config.Secret(r.database), config.Secret(nats)
	cfg.StreamMaxBytes, cfg.NoReceiver, cfg.OpsAddr = 64*config.MiB, true, "127.0.0.1:0"
	ctx, stop := context.WithCancel(context.Background())
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- service.RunIngest(ctx, cfg, process.Options{Log: zerolog.Nop(), Ready: func() { close(ready) }})
	}()
	r.t.Cleanup(func() {
		stop()
		require.NoError(r.t, <-ended)
	})
	<-ready
}

func (r *trial) run(protocol string) {
	r.t.Helper()
	started := time.Now()
	r.startMQTT(protocol)
	r.t.Cleanup(func() { r.mqtt.Kill() }) // The last one.
	require.Eventually(r.t, func() bool { return strings.Contains(r.log.String(), "connected to the broker") },
		patience, 20*time.Millisecond, &r.log) // From here on, there is a session.
	messages := units * perUnit()
	acked := make(chan struct{}, messages)
	group, ctx := errgroup.WithContext(r.t.Context())
	for sender := range senders {
		group.Go(func() error { return r.send(ctx, sender, acked) })
	}
	faults := 0
	group.Go(func() error {
		for n := 1; n <= messages; n++ {
			select {
			case <-acked:
			case <-ctx.Done():
				return ctx.Err()
			}
			if n%perFault == 0 {
				if err := r.fault(ctx, faults%4, protocol); err != nil {
					return err
				}
				faults++
			}
		}
		return nil
	})
	require.NoError(r.t, group.Wait())
	r.verify(messages)
	r.t.Logf("MQTT %s: %d messages of %d units acknowledged (%d sends), %d faults, 0 lost, 0 duplicated, %s",
		protocol, messages, units, r.sent.Load(), faults, time.Since(started).Round(time.Second))
	_, err := r.mqtt.Stop(process.ShutdownTimeout)
	require.NoError(r.t, err, &r.log)
}

// perUnit returns how many messages each unit sends: 2, so that each kind of fault happens, or more in a long trial.
func perUnit() int {
	n := 2
	_, _ = fmt.Sscan(os.Getenv("MQTT_TRIAL_MESSAGES"), &n)
	return n
}

func (r *trial) startMQTT(protocol string) {
	r.t.Helper()
	var err error
	r.mqtt, err = proctest.Start(proctest.Command{
		Path: r.program, Env: r.env, Log: &r.log,
		Args: []string{"mqtt", "--protocol", protocol, "--subscribe", "zigbee2mqtt/+=" + r.source},
	})
	require.NoError(r.t, err)
}

// firstBucket is the time of the first message of each unit. The others are five minutes apart.
var firstBucket = time.Date(2026, time.January, 1, 0, 0, 3, 0, time.UTC)

// send sends the messages of a part of the units. It repeats each one until the broker has acknowledged it.
func (r *trial) send(ctx context.Context, sender int, acked chan<- struct{}) error {
	for n := range perUnit() {
		for unit := sender; unit < units; unit += senders {
			payload := fmt.Sprintf(`{"co2":%d,"last_seen":%q}`, value(unit, n),
				roomsensor.FormatTime(firstBucket.Add(time.Duration(n)*5*time.Minute)))
			for {
				r.sent.Add(1)
				r.sending.RLock()
				err := r.broker.Send(ctx, "zigbee2mqtt/"+unitName(unit), payload)
				r.sending.RUnlock()
				if err == nil {
					break
				}
				if ctx.Err() != nil {
					return ctx.Err()
				}
			}
			acked <- struct{}{}
		}
	}
	return nil
}

func value(unit, n int) int { return 400 + unit + n }

// fault kills the process, ends or kills the broker, or cuts the connection, and restores it.
func (r *trial) fault(ctx context.Context, kind int, protocol string) error {
	switch kind {
	case 0:
		r.mqtt.Kill()
		r.startMQTT(protocol)
	case 1:
		r.proxy.Cut()
		r.proxy.Restore()
	case 2:
		if err := r.broker.Signal(syscall.SIGTERM); err != nil {
			return err
		}
		<-r.broker.Done()
		return r.broker.Restart(ctx)
	case 3: // The broker itself may lose what it acknowledges now.
		r.sending.Lock()
		defer r.sending.Unlock()
		if err := r.broker.Save(ctx); err != nil {
			return err
		}
		r.broker.Kill()
		return r.broker.Restart(ctx)
	}
	return nil
}

// verify waits until all messages are stored, and compares the tables with what was sent.
func (r *trial) verify(messages int) {
	r.t.Helper()
	sql, err := pgx.Connect(r.t.Context(), r.database)
	require.NoError(r.t, err)
	defer func() { require.NoError(r.t, sql.Close(context.Background())) }()
	count := func(query string) (n int) {
		require.NoError(r.t, sql.QueryRow(r.t.Context(), query).Scan(&n))
		return n
	}
	require.Eventually(r.t, func() bool { return count("SELECT count(*) FROM readings") >= messages }, patience, 100*time.Millisecond,
		"%s", &r.log)
	require.Equal(r.t, messages, count("SELECT count(*) FROM readings"))
	require.Equal(r.t, messages, count("SELECT count(*) FROM samples"))
	require.Zero(r.t, count("SELECT count(*) FROM rejected_uploads"))
	rows, err := sql.Query(r.t.Context(), `SELECT a.alias, r.bucket_at, r.co2_ppm FROM readings r
		JOIN device_hardware h USING (device_id) JOIN unit_aliases a USING (hardware_id)`)
	require.NoError(r.t, err)
	for rows.Next() {
		var alias string
		var at time.Time
		var co2 float32
		require.NoError(r.t, rows.Scan(&alias, &at, &co2))
		var unit int
		_, err := fmt.Sscanf(alias, "0x%x", &unit)
		require.NoError(r.t, err)
		n := int(at.Sub(firstBucket.Truncate(5*time.Minute)) / (5 * time.Minute))
		require.InDelta(r.t, value(unit-1, n), co2, 0, alias)
	}
	require.NoError(r.t, rows.Err())
}
