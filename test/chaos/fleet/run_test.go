package fleet

import (
	"bytes"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"roomsensor/test/dbtest"
	"roomsensor/test/harness"
)

func TestMain(m *testing.M) {
	dbtest.Verify(m, // fasthttp ends these some seconds after the last connection.
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*HostClient).connsCleaner"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*TCPDialer).tcpAddrsClean"))
}

// small returns the options of a trial of 10 seconds: 400 turns, in 4 of which a device returns.
func small() Options {
	o := Short(5)
	o.Devices, o.Duration, o.Teams, o.Senders, o.Every = 12_000, 10*time.Second, 10, 8, 3*time.Second
	o.Outage, o.Polls, o.Exports, o.Probes = 5*time.Minute, 6, 1, 1
	return o
}

// TestRun runs a small trial with real processes, of which the API is replaced, and devices that come back
// after days: every reading is stored as it was sent,
// and everything is measured.
func TestRun(t *testing.T) {
	t.Parallel()
	o := small()
	o.Late, o.LateFor, o.LateAfter = 30, 48*time.Hour, 3*time.Second
	o.Restart, o.DatabaseURL, o.Progress = 3*time.Second, dbtest.Empty(t).URL, t.Output()
	r, err := Run(t.Context(), o)
	require.NoError(t, err)
	require.NoError(t, r.Failure())
	const late, twice = 2 * 30, 2 * 3 // uploads
	require.Greater(t, r.Verdict.Readings, 30*576+r.Accepted-late-twice, "some devices return, and 30 come back after days")
	require.Positive(t, r.Late)
	for _, k := range kinds {
		require.Positive(t, r.Latencies[k].Requests, k)
		require.Positive(t, r.Latencies[k].P99, k)
	}
	end := r.Samples[len(r.Samples)-1]
	for _, name := range []string{"receiver 1", "worker 1", "worker 2", "api 1", "nats"} {
		require.Positive(t, end.Processes[name].MiB, name)
	}
	d := end.Disk
	for _, bytes := range []int64{d.Table, d.Indexes, d.Feed, d.Devices, d.Database, d.WAL, d.Stream} {
		require.Positive(t, bytes)
	}
	require.Positive(t, r.PerDeviceDay["stream bytes"])
	var out bytes.Buffer
	require.NoError(t, r.Print(&out))
	require.Regexp(t, `\n0 lost, 0 duplicated, 0 wrong, 0 failed requests, p99 visible \d+\.\ds\n$`, out.String())
}

// TestVerify checks that each kind of damage to the table shows in the verdict.
func TestVerify(t *testing.T) {
	t.Parallel()
	o := small()
	o.Devices, o.History = 60, time.Hour
	base, err := harness.NewEnv(t.TempDir(), t.Output())
	require.NoError(t, err)
	db := dbtest.New(t)
	e := &env{Env: base, options: o, plan: newPlan(&o, time.Now()), recorder: newRecorder()}
	e.plan.turns = 3 * o.Devices
	e.service = &harness.Service{Env: base, DatabaseURL: func() string { return db.URL }}
	require.NoError(t, e.register(t.Context()))
	require.NoError(t, e.verifyIDs(t.Context()))
	conn, err := pgx.Connect(t.Context(), db.URL)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(t.Context())) }()
	exec := func(sql string, args ...any) {
		t.Helper()
		tag, err := conn.Exec(t.Context(), sql, args...)
		require.NoError(t, err)
		require.EqualValues(t, 1, tag.RowsAffected(), sql)
	}
	online := -1 // A device that sends one reading in each round.
	var want int64
	for device := range o.Devices {
		n := e.plan.expected(device).count
		want += n
		if e.plan.sends(device, 0) == 1 && n == 3 {
			online = device
		}
		for turn := range e.plan.rounds(device) {
			for i := turn - e.plan.sends(device, turn) + 1; i <= turn; i++ {
				m := e.plan.measurement(device, i)
				v := m.Values
				at := func(x float32, _ bool) float32 { return x }
				exec(`INSERT INTO readings (device_id, bucket_at, co2_ppm, temp_c, humidity_pct, lux, spl_db, measured_at)
					VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`, e.plan.deviceID(device), m.Bucket(),
					at(v.Get(0)), at(v.Get(1)), at(v.Get(2)), at(v.Get(3)), at(v.Get(4)), m.MeasuredAt)
			}
		}
	}
	verify := func() Verdict {
		t.Helper()
		v, err := e.verify(t.Context())
		require.NoError(t, err)
		return v
	}
	require.Equal(t, Verdict{Readings: want}, verify())
	require.Empty(t, e.Findings())

	id, bucket := e.plan.deviceID(online), e.plan.bucket(1)
	exec("UPDATE readings SET lux = lux + 0.1 WHERE device_id = $1 AND bucket_at = $2", id, bucket)
	require.Equal(t, Verdict{Wrong: 1, Readings: want}, verify(), "another value")
	exec("UPDATE readings SET lux = null WHERE device_id = $1 AND bucket_at = $2", id, bucket)
	require.Equal(t, Verdict{Wrong: 1, Readings: want}, verify(), "no value")
	exec("DELETE FROM readings WHERE device_id = $1 AND bucket_at = $2", id, bucket)
	require.Equal(t, Verdict{Lost: 1, Readings: want - 1}, verify())
	other := e.plan.deviceID((online + 1) % o.Devices)
	exec("INSERT INTO readings (device_id, bucket_at) VALUES ($1, $2)", other, bucket.AddDate(0, 0, -1))
	require.Equal(t, Verdict{Lost: 1, Duplicated: 1, Readings: want}, verify(), "a reading of another device in its place")
	exec("INSERT INTO readings (device_id, bucket_at, co2_ppm) VALUES (gen_random_uuid(), $1, 400)", bucket)
	require.Equal(t, Verdict{Lost: 1, Duplicated: 1, Wrong: 1, Readings: want + 1}, verify(), "an unknown device")
	require.NotEmpty(t, e.Findings(), "the aggregates count fewer CO2 values than there are readings")
}

func TestReportFailure(t *testing.T) {
	t.Parallel()
	require.NoError(t, (&Report{}).Failure())
	for _, r := range []Report{
		{Verdict: Verdict{Lost: 1}},
		{Verdict: Verdict{Duplicated: 1}},
		{Verdict: Verdict{Wrong: 1}},
		{Failed: 1},
		{Findings: []string{"x"}},
	} {
		require.ErrorIs(t, r.Failure(), harness.ErrFailed)
	}
	r := Report{Failed: 2, Failures: map[string]int{"export: status 503": 2}}
	require.ErrorContains(t, r.Failure(), "2 x export: status 503")
}

func TestOptionsValidate(t *testing.T) {
	t.Parallel()
	valid := small()
	require.NoError(t, valid.Validate())
	for _, change := range []func(*Options){
		func(o *Options) { o.Devices = 0 }, func(o *Options) { o.Duration = 0 }, func(o *Options) { o.Teams = o.Devices + 1 },
		func(o *Options) { o.Outage = time.Minute }, func(o *Options) { o.Late = o.Devices + 1 },
		func(o *Options) { o.Exports = -1 },
	} {
		o := small()
		change(&o)
		_, err := Run(t.Context(), o)
		require.Error(t, err)
	}
}
