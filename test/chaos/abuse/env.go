package abuse

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"roomsensor/internal/dev/postgres"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/simulate"
	"roomsensor/schema"
	"roomsensor/test/harness"
)

const (
	// readyTimeout is for a process to become ready on a busy machine.
	readyTimeout = time.Minute
	// historyAge is the age of the newest reading at the start. The tenant then sends one bucket after the other.
	historyAge = 24 * time.Hour
)

// settings are those of the processes under test. Stream and rejects are small, so that a flood that the service does
// not limit fills them within seconds. The dashboard believes the addresses that its clients name.
var settings = []string{
	"LOG_LEVEL=warn", "STREAM_MAX_BYTES=256MiB", "REJECTS_MAX_BYTES=16MiB", "TRUSTED_PROXIES=127.0.0.1/32",
}

// env is what a trial runs.
type env struct {
	*harness.Env
	options   Options
	service   *harness.Service
	database  string // as it describes itself
	queueURL  string
	history   time.Time // the tenant's first upload
	team      *team     // the well-behaved tenant
	attackers map[string]*team

	api, receiver, worker, dashboard *harness.Process
}

// team is a team with its devices and keys.
type team struct {
	id          uuid.UUID
	devices     []harness.Device
	keys        []string
	credentials []string // of the receiver
	people      []string // email addresses of accounts of the dashboard
}

// newEnv builds and starts everything. The caller closes the environment, also after an error.
func newEnv(ctx context.Context, o Options) (*env, error) {
	base, err := harness.NewEnv(o.Dir, o.Progress)
	if err != nil {
		return nil, err
	}
	e := &env{
		Env: base, options: o, attackers: map[string]*team{},
		history: time.Now().UTC().Add(-historyAge).Truncate(roomsensor.BucketLength),
	}
	for _, step := range []func(context.Context) error{
		e.Build, e.startDatabase, e.startQueue, e.insertTenant, e.insertAttackers, e.startProcesses,
	} {
		if err := step(ctx); err != nil {
			return e, err
		}
	}
	return e, nil
}

func (e *env) startDatabase(ctx context.Context) error {
	// The trial is not about crashes, and without fsync other programs on the machine disturb it less.
	server, info, err := e.StartDatabase(ctx, postgres.Options{
		Settings: map[string]string{"fsync": "off", "full_page_writes": "off"},
	})
	if err != nil {
		return err
	}
	e.database = info.String()
	e.service = &harness.Service{Env: e.Env, DatabaseURL: func() string { return server.URL }}
	return schema.Up(ctx, server.URL, schema.Layout{})
}

func (e *env) startQueue(ctx context.Context) error {
	nats, js, err := e.StartNATS(ctx)
	if err == nil {
		e.queueURL, e.service.JS = nats.URL, js
	}
	return err
}

// devices returns n devices, the first with a hardware id.
func devices(first string, n int) []harness.Device {
	fleet := simulate.Fleet{Devices: n, FirstHardwareID: first}
	list := make([]harness.Device, n)
	for i := range list {
		list[i] = harness.Device{ID: uuid.New(), HardwareID: fleet.HardwareID(i), Name: fmt.Sprintf("Room %d", i+1)}
	}
	return list
}

func insertTeam(
	ctx context.Context, conn *pgx.Conn, name string, devices []harness.Device, keys, credentials int,
) (t *team, err error) {
	t = &team{devices: devices, credentials: make([]string, credentials)}
	if t.id, err = harness.InsertTeam(ctx, conn, name, devices); err != nil {
		return nil, err
	}
	for i := range t.credentials {
		if t.credentials[i], err = harness.InsertIngestKey(ctx, conn, t.id); err != nil {
			return nil, err
		}
	}
	if t.keys, err = harness.InsertAPIKeys(ctx, conn, t.id, keys); err != nil {
		return nil, err
	}
	t.people, err = insertPeople(ctx, conn, t.id)
	return t, err
}

func (e *env) insertTenant(ctx context.Context) error {
	return e.service.Query(ctx, func(ctx context.Context, conn *pgx.Conn) (err error) {
		list := devices("dev:810000000000001", tenantDevices+1)
		if e.team, err = insertTeam(ctx, conn, "Well-behaved", list, tenantKeys, 1); err != nil {
			return err
		}
		const history = 2 * 24 * time.Hour
		if err := insertReadings(ctx, conn, list[:tenantDevices], e.history.Add(-history), e.history); err != nil {
			return err
		}
		month := e.history.Add(-30 * 24 * time.Hour)
		return insertReadings(ctx, conn, list[tenantDevices:], month, month.Add(time.Hour))
	})
}

// insertReadings inserts a reading of each device per bucket of [from, until).
func insertReadings(
	ctx context.Context, conn *pgx.Conn, devices []harness.Device, from, until time.Time,
) error {
	ids := make([]uuid.UUID, len(devices))
	for i := range devices {
		ids[i] = devices[i].ID
	}
	_, err := conn.Exec(ctx, `
		INSERT INTO readings (device_id, bucket_at, measured_at, co2_ppm, temp_c, humidity_pct, lux, spl_db)
		SELECT d, b AS bucket_at, b AS measured_at, 640, 21.4, 40.2, 380, 51.5 FROM unnest($1::uuid[]) d,
			generate_series($2::timestamptz, $3::timestamptz - interval '5 minutes', interval '5 minutes') b`, ids, from, until)
	if err != nil {
		return fmt.Errorf("inserting readings: %w", err)
	}
	return nil
}

// insertAttackers inserts the teams of the attacks.
func (e *env) insertAttackers(ctx context.Context) error {
	return e.service.Query(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		for i, a := range all() {
			list := devices(fmt.Sprintf("dev:82%02d00000000001", i), a.team.devices)
			var err error
			if e.attackers[a.name], err = insertTeam(ctx, conn, a.name, list, a.team.keys, a.team.credentials); err != nil {
				return err
			}
		}
		return nil
	})
}

func (e *env) startProcesses(ctx context.Context) error {
	for _, p := range []struct {
		process **harness.Process
		name    string
		args    []string
	}{
		{&e.worker, "worker", []string{"ingest", "--no-receiver"}}, // It declares the stream for the others.
		{&e.receiver, "receiver", []string{"ingest", "--no-worker"}},
		{&e.api, "api", []string{"api"}},
		{&e.dashboard, "dashboard", []string{"dashboard"}},
	} {
		started, err := e.NewProcess(p.name, e.Programs.Roomsensor, slices.Concat([]string{
			"DATABASE_URL=" + e.service.DatabaseURL(), "NATS_URL=" + e.queueURL,
			fmt.Sprintf("GOMEMLIMIT=%dMiB", e.options.Memory*8/10), fmt.Sprintf("UPLOAD_MEMORY=%dMiB", e.options.Memory/2),
		}, settings), p.args...)
		if err != nil {
			return err
		}
		*p.process = started
		if err := started.Start(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (e *env) processes() []*harness.Process {
	return []*harness.Process{e.api, e.receiver, e.worker, e.dashboard}
}

// replaceProcesses replaces the processes that ended or went over their limit, so that one attack does not disturb the
// measurement of the next.
func (e *env) replaceProcesses(ctx context.Context) error {
	for _, p := range e.processes() {
		replace := p.Ended()
		if !replace {
			_, peak, err := p.Memory()
			if err != nil {
				return err
			}
			replace = mib(peak) > float64(e.options.Memory)
		}
		if !replace {
			continue
		}
		e.Logf("replacing the %s", p.Name)
		if err := errors.Join(p.End(), p.Start(ctx)); err != nil {
			return err
		}
	}
	return nil
}

func (e *env) resetPeaks() error {
	for _, p := range e.processes() {
		if err := p.ResetPeakMemory(); err != nil {
			return err
		}
	}
	return nil
}

// peaks returns the peak memory of each process in MiB. A process that ended is a finding, and over every limit.
func (e *env) peaks(attack string) []Peak {
	var list []Peak
	for _, p := range e.processes() {
		_, peak, err := p.Memory()
		ended := p.Ended() || err != nil
		if ended {
			e.Unexpected("%s: the %s ended", attack, p.Name)
		}
		list = append(list, Peak{Process: p.Name, MiB: mib(peak), Over: ended || mib(peak) > float64(e.options.Memory)})
	}
	return list
}

func mib(bytes int64) float64 { return float64(bytes>>10) / (1 << 10) }
