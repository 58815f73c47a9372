package doctor

import (
	"context"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"roomsensor/docs"
	"roomsensor/internal/admin"
	"roomsensor/internal/config"
	"roomsensor/internal/dev/postgres"
	"roomsensor/internal/process"
	"roomsensor/internal/queue"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store"
	"roomsensor/internal/store/ops"
	"roomsensor/schema"
	"roomsensor/test/dbtest"
	"roomsensor/test/natstest"
	"roomsensor/test/proctest"
)

// doctorEnv is an installation that a test breaks.
type doctorEnv struct {
	*doctor
	operator *admin.Operator
	js       jetstream.JetStream
}

func newDoctorEnv(t *testing.T) *doctorEnv {
	t.Helper()
	database := config.Database{DatabaseURL: config.Secret(dbtest.New(t).URL)}
	s, err := store.Open(t.Context(), string(database.DatabaseURL), store.Operator)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	at := config.Queue{NATSURL: config.Secret(natstest.New(t).URL)}
	conn, err := nats.Connect(string(at.NATSURL))
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	require.NoError(t, err)
	d := &doctor{
		store: s, url: string(database.DatabaseURL), now: time.Now,
		options: Options{Queue: at, Keep: config.Defaults[config.Retention]()},
	}
	return &doctorEnv{d, admin.New(database, s), js}
}

// declare creates the stream and its consumer, as a worker does, and records it.
func (e *doctorEnv) declare(t *testing.T) {
	t.Helper()
	_, err := e.operator.ConfirmStream(t.Context(), e.options.Queue, config.Defaults[config.Stream]())
	require.NoError(t, err)
	q, conn, err := process.ConnectQueue(e.options.Queue, config.Defaults[config.Stream](), t.Name(), zerolog.Nop())
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, process.DeclareStream(t.Context(), q))
}

// diagnose returns the findings by check. Each must say what to do unless it is ok.
func (e *doctorEnv) diagnose(t *testing.T) map[string]Finding {
	t.Helper()
	again := *e.doctor // Without findings.
	diagnosis, err := again.diagnose(t.Context())
	require.NoError(t, err)
	findings := map[string]Finding{}
	for _, f := range diagnosis.Data {
		require.Equal(t, f.Status == OK, f.Fix == nil, f.Message)
		require.Regexp(t, `\.$`, f.Message)
		findings[f.Check] = f
	}
	return findings
}

func (e *doctorEnv) exec(t *testing.T, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), e.url)
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), sql)
	require.NoError(t, err)
	require.NoError(t, conn.Close(t.Context()))
}

// blocked makes a session with a name, idle in a transaction that locks the readings, and another one that waits for it
// until the first one ends.
func (e *doctorEnv) blocked(t *testing.T, name string) {
	t.Helper()
	config, err := pgx.ParseConfig(e.url)
	require.NoError(t, err)
	config.RuntimeParams["application_name"] = name
	blocker, err := pgx.ConnectConfig(t.Context(), config)
	require.NoError(t, err)
	_, err = blocker.Exec(t.Context(), "BEGIN; LOCK TABLE readings IN ACCESS EXCLUSIVE MODE")
	require.NoError(t, err)
	waiter, err := pgx.Connect(t.Context(), e.url)
	require.NoError(t, err)
	waited := make(chan error, 1)
	go func() {
		_, err := waiter.Exec(context.WithoutCancel(t.Context()), "SELECT FROM readings LIMIT 1")
		waited <- err
	}()
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		_ = blocker.Close(ctx) // It may be ended already.
		require.NoError(t, <-waited)
		require.NoError(t, waiter.Close(ctx))
	})
}

func TestDiagnoseDatabase(t *testing.T) {
	t.Parallel()
	t.Run("of this version", func(t *testing.T) {
		t.Parallel()
		e := newDoctorEnv(t)
		findings := e.diagnose(t)
		for _, check := range []string{
			"database", "database migrations", "database clock", "database jobs", "database sessions", "database writes",
			"database owner", "database roles", "database archive",
		} {
			require.Equal(t, OK, findings[check].Status, check)
		}
		require.Equal(t, Advice, findings["database role"].Status, "tests log in as a superuser")
	})
	t.Run("of another version", func(t *testing.T) {
		t.Parallel()
		e := newDoctorEnv(t)
		e.exec(t, "DELETE FROM goose_db_version WHERE version_id = (SELECT max(version_id) FROM goose_db_version)")
		f := e.diagnose(t)["database migrations"]
		require.Equal(t, Wrong, f.Status)
		require.Contains(t, *f.Fix, "roomsensor migrate up")
	})
	t.Run("with another clock", func(t *testing.T) {
		t.Parallel()
		e := newDoctorEnv(t)
		e.declare(t)
		e.now = func() time.Time { return time.Now().Add(-10 * time.Minute) }
		findings := e.diagnose(t)
		for _, check := range []string{"database clock", "queue clock"} {
			f := findings[check]
			require.Equal(t, Wrong, f.Status, check)
			// Some seconds less on a busy machine: it reads its own clock after that of the server.
			require.Regexp(t, "is (10m0|9m5[0-9])s ahead of the one of this machine", f.Message, check)
		}
	})
	t.Run("with chunks and uploads that need an operator", func(t *testing.T) {
		t.Parallel()
		e := newDoctorEnv(t)
		e.exec(t, "INSERT INTO postponed_chunks VALUES ('c', now() + interval '1 day', '1 minute')")
		require.Equal(t, Advice, e.diagnose(t)["database layout"].Status)
		_, err := e.store.SkipUpload(t.Context(), roomsensor.Reject{
			Arrival: roomsensor.Arrival{At: time.Now().UTC(), Sequence: 1}, Reason: roomsensor.ReasonNotStorable, Detail: "XX000",
			Payload: []byte("{}"),
		})
		require.NoError(t, err)
		f := e.diagnose(t)["rejects"]
		require.Equal(t, Wrong, f.Status)
		require.Contains(t, f.Message, "1 uploads are set aside")
	})
	t.Run("with chunks that are too long for the fleet", func(t *testing.T) {
		t.Parallel()
		e := newDoctorEnv(t)
		require.Equal(t, OK, e.diagnose(t)["database chunks"].Status)
		// The index of 90 days is a little larger than shared_buffers.
		e.exec(t, "CALL ensure_chunk_interval('90 days')")
		e.exec(t, `
			WITH team AS (INSERT INTO teams (name) VALUES ('Large') RETURNING id),
			added AS (
				INSERT INTO devices (team_id, hardware_id) SELECT id, 'dev:' || i
				FROM team, generate_series(1, pg_size_bytes(current_setting('shared_buffers')) / (69 * 288 * 90) + 1) i
				RETURNING id, hardware_id)
			INSERT INTO device_hardware (device_id, hardware_id) SELECT id, hardware_id FROM added`)
		f := e.diagnose(t)["database chunks"]
		require.Equal(t, Advice, f.Status)
		require.Contains(t, *f.Fix, "roomsensor migrate up --chunk-interval 7d")

		migration := config.Migration{
			Database: config.Database{DatabaseURL: config.Secret(e.url)}, Layout: config.Defaults[config.Layout](),
		}
		migration.ChunkInterval = config.ChunkIntervalAuto
		state, err := admin.MigrateUp(t.Context(), migration)
		require.NoError(t, err)
		require.EqualValues(t, 7*86400, state.Readings.Interval)
		require.Equal(t, OK, e.diagnose(t)["database chunks"].Status)
	})
	t.Run("with a session that blocks others", func(t *testing.T) {
		t.Parallel()
		e := newDoctorEnv(t)
		require.Equal(t, OK, e.diagnose(t)["database sessions"].Status)
		e.blocked(t, "doctor's patient")
		var blockers []ops.Blocker
		require.Eventually(t, func() bool {
			var err error
			blockers, err = e.store.Blockers(t.Context(), 0)
			require.NoError(t, err)
			return len(blockers) == 1
		}, time.Minute, 10*time.Millisecond)
		short, err := e.store.Blockers(t.Context(), time.Hour)
		require.NoError(t, err)
		require.Empty(t, short)
		d := &doctor{}
		d.reportBlockers(blockers, true)
		f := d.findings[0]
		require.Equal(t, Wrong, f.Status)
		require.Regexp(t, `application "doctor's patient", role ".+", state idle in transaction\) blocks 1 others`, f.Message)
		_, statement, found := strings.Cut(*f.Fix, "SQL: ")
		require.True(t, found)
		e.exec(t, statement)
		require.Eventually(t, func() bool {
			left, err := e.store.Blockers(t.Context(), 0)
			return err == nil && len(left) == 0
		}, time.Minute, 10*time.Millisecond)
	})
	t.Run("without a free connection", func(t *testing.T) {
		t.Parallel()
		db := dbtest.New(t)
		database := config.Database{DatabaseURL: config.Secret(db.As(t, schema.RoleAPI))}
		s, err := store.Open(t.Context(), string(database.DatabaseURL), store.Operator)
		require.NoError(t, err)
		t.Cleanup(s.Close)
		e := &doctorEnv{doctor: &doctor{url: db.URL}}
		e.exec(t, `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I CONNECTION LIMIT 0', current_database()); END $$`)
		d := &doctor{store: s, url: string(database.DatabaseURL), now: time.Now}
		d.checkDatabase(t.Context())
		require.Equal(t, Wrong, d.findings[0].Status)
		require.Contains(t, *d.findings[0].Fix, "because it has no free connection (SQLSTATE 53300)")
	})
	t.Run("that does not answer", func(t *testing.T) {
		t.Parallel()
		e := newDoctorEnv(t)
		e.store.Close()
		require.Equal(t, Wrong, e.diagnose(t)["database"].Status)
	})
}

// TestDiagnoseTrials breaks what processes must be able to do.
func TestDiagnoseTrials(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		sql, check, message, fix string
		status                   Status
	}{
		"read-only": {
			`DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = on', current_database()); END $$`,
			"database writes", "cannot execute INSERT in a read-only transaction", "default_transaction_read_only", Wrong,
		},
		"a right that is missing": {
			`REVOKE INSERT ON readings FROM roomsensor_test_worker`,
			"database roles", "1 rights are missing: roomsensor_test_worker: INSERT on readings.", "DATABASE_ROLES=roomsensor_test", Wrong,
		},
		"a right that was added": {
			`GRANT UPDATE (label) ON assignments TO roomsensor_test_api`,
			"database roles", "roomsensor_test_api: UPDATE on assignments.label", "migrate up", Advice,
		},
		"an owner that may not create": {
			`ALTER TABLE teams OWNER TO roomsensor_test_worker`,
			"database owner", "The role roomsensor_test_worker owns the tables, and may not create", "OWNER TO roomsensor_test_worker;", Wrong,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newDoctorEnv(t)
			e.exec(t, test.sql)
			e.store.Pool.Reset()
			f := e.diagnose(t)[test.check]
			require.Equal(t, test.status, f.Status, f.Message)
			require.Contains(t, f.Message, test.message)
			require.Contains(t, *f.Fix, test.fix)
		})
	}
	t.Run("a locked table", func(t *testing.T) {
		t.Parallel()
		e := newDoctorEnv(t)
		blocker, err := pgx.Connect(t.Context(), e.url)
		require.NoError(t, err)
		_, err = blocker.Exec(t.Context(), "BEGIN; LOCK TABLE devices")
		require.NoError(t, err)
		f := e.diagnose(t)["database writes"]
		require.Equal(t, Wrong, f.Status)
		require.Contains(t, *f.Fix, fmt.Sprintf("pid %d locks devices", blocker.PgConn().PID()))
		require.NoError(t, blocker.Close(t.Context()))
	})
	t.Run("with a role that is not the owner", func(t *testing.T) {
		t.Parallel()
		url := dbtest.New(t).As(t, schema.RoleWorker)
		s, err := store.Open(t.Context(), url, store.Operator)
		require.NoError(t, err)
		t.Cleanup(s.Close)
		d := &doctor{store: s, url: url, now: time.Now}
		d.checkBlockers(t.Context())
		d.checkTrials(t.Context())
		for _, f := range d.findings[:2] { // The sessions of other roles, and writes to all tables.
			require.Equal(t, Unknown, f.Status, f.Message)
		}
	})
}

func TestDiagnoseArchive(t *testing.T) {
	t.Parallel()
	server, remove, err := dbtest.StartTemporary(t.Context(), postgres.Options{
		Settings: map[string]string{"archive_mode": "on", "archive_command": "false"}, Progress: t.Output(),
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, remove()) })
	s, err := store.Open(t.Context(), server.URL, store.Operator)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	e := &doctorEnv{doctor: &doctor{store: s, url: server.URL, now: time.Now}}
	e.exec(t, "SELECT pg_switch_wal()")
	require.Eventually(t, func() bool {
		d := &doctor{store: e.store, url: e.url, now: time.Now}
		require.NoError(t, d.checkArchive(t.Context(), "archive"))
		return d.findings[0].Status == Wrong
	}, time.Minute, 10*time.Millisecond)
}

func TestDiagnoseQueue(t *testing.T) {
	t.Parallel()
	t.Run("without a stream", func(t *testing.T) {
		t.Parallel()
		e := newDoctorEnv(t)
		require.Contains(t, e.diagnose(t)["queue"].Message, "has no stream")
		_, err := e.js.Stream(t.Context(), queue.StreamName)
		require.ErrorIs(t, err, jetstream.ErrStreamNotFound, "it creates nothing")
	})
	t.Run("as the service declares it", func(t *testing.T) {
		t.Parallel()
		e := newDoctorEnv(t)
		e.declare(t)
		findings := e.diagnose(t)
		for _, check := range []string{"queue", "queue stream", "queue settings", "queue backlog", "queue size", "queue clock"} {
			require.Equal(t, OK, findings[check].Status, check)
		}
		require.Equal(t, Advice, findings["queue replicas"].Status)
	})
	t.Run("with another stream than the recorded one", func(t *testing.T) {
		t.Parallel()
		e := newDoctorEnv(t)
		e.declare(t)
		require.NoError(t, e.js.DeleteStream(t.Context(), queue.StreamName))
		_, err := e.js.CreateStream(t.Context(), jetstream.StreamConfig{Name: queue.StreamName, Storage: jetstream.MemoryStorage})
		require.NoError(t, err)
		findings := e.diagnose(t)
		require.Equal(t, Wrong, findings["queue stream"].Status)
		require.Equal(t, Wrong, findings["queue settings"].Status)
		require.Contains(t, findings["queue backlog"].Message, "no consumer")
		require.Contains(t, findings["queue size"].Message, "no size limit")
	})
	t.Run("with a backlog", func(t *testing.T) {
		t.Parallel()
		e := newDoctorEnv(t)
		e.declare(t)
		_, err := e.js.Publish(t.Context(), "uploads.-.dev:1", []byte(`{}`))
		require.NoError(t, err)
		require.Equal(t, OK, e.diagnose(t)["queue backlog"].Status)
		e.now = func() time.Time { return time.Now().Add(maxLag + time.Minute) }
		require.Equal(t, Wrong, e.diagnose(t)["queue backlog"].Status)
	})
}

func TestDiagnoseStreamSize(t *testing.T) {
	t.Parallel()
	newest := time.Date(2026, 1, 8, 0, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		info   queue.Info
		status Status
	}{
		"a day in a tenth of the limit": {
			queue.Info{Oldest: newest.Add(-24 * time.Hour), Newest: newest, Bytes: 1 << 20, MaxBytes: 10 << 20}, OK,
		},
		"a day in a fifth of the limit": {
			queue.Info{Oldest: newest.Add(-24 * time.Hour), Newest: newest, Bytes: 2 << 20, MaxBytes: 10 << 20}, Wrong,
		},
		"a minute": {
			queue.Info{Oldest: newest.Add(-time.Minute), Newest: newest, Bytes: 9 << 20, MaxBytes: 10 << 20}, OK,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := &doctor{options: Options{Keep: config.Retention{StreamKeep: config.Duration(7 * 24 * time.Hour)}}}
			d.checkReach(&test.info)
			require.Equal(t, test.status, d.findings[0].Status, d.findings[0].Message)
		})
	}
}

func TestDiagnoseMonitoring(t *testing.T) {
	t.Parallel()
	for syncs, want := range map[bool]Status{true: OK, false: Wrong} {
		s, err := server.NewServer(&server.Options{
			Host: "127.0.0.1", Port: server.RANDOM_PORT, HTTPHost: "127.0.0.1", HTTPPort: server.RANDOM_PORT, NoSigs: true,
			JetStream: true, StoreDir: t.TempDir(), SyncAlways: syncs,
		})
		require.NoError(t, err)
		s.Start()
		t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
		require.True(t, s.ReadyForConnections(proctest.Patience))
		d := &doctor{options: Options{NATSMonitoring: "http://" + s.MonitorAddr().String()}}
		d.checkMonitoring(t.Context())
		require.Equal(t, want, d.findings[0].Status, d.findings[0].Message)
	}
}

func TestDiagnoseSite(t *testing.T) {
	t.Parallel()
	pages, err := docs.Handler(docs.Options{})
	require.NoError(t, err)
	// receives adds a receiver to a site, behind a proxy that allows bodies of some bytes.
	receives := func(site http.Handler, limit int64) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.URL.Path != "/uploads":
				site.ServeHTTP(w, r)
			case r.ContentLength > limit:
				w.WriteHeader(http.StatusRequestEntityTooLarge)
			default:
				w.WriteHeader(http.StatusUnauthorized)
				_, _ = w.Write([]byte(`{"error":{"code":"ingest_key_missing"}}`))
			}
		})
	}
	for name, test := range map[string]struct {
		handler http.Handler
		tls     bool
		want    string
		status  Status
	}{
		"uploads":                  {receives(pages, 16<<20), false, "Uploads of 16 MiB reach a receiver", OK},
		"a proxy with a limit":     {receives(pages, 16<<20-1), false, "refuses uploads of 16 MiB", Wrong},
		"a proxy without uploads":  {pages, false, "No receiver answers", Wrong},
		"the API":                  {pages, false, "The API answers", OK},
		"something else":           {http.NotFoundHandler(), false, "the status is 404", Wrong},
		"an untrusted certificate": {pages, true, "certificate", Wrong},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			site := httptest.NewUnstartedServer(test.handler)
			site.Config.ErrorLog = nil
			if test.tls {
				site.StartTLS()
			} else {
				site.Start()
			}
			t.Cleanup(site.Close)
			d := &doctor{now: time.Now, options: Options{PublicURL: site.URL}}
			d.checkSite(t.Context())
			i := slices.IndexFunc(d.findings, func(f Finding) bool { return strings.Contains(f.Message, test.want) })
			require.GreaterOrEqual(t, i, 0, d.findings)
			require.Equal(t, test.status, d.findings[i].Status)
		})
	}
}

func TestDiagnoseCertificate(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for left, want := range map[time.Duration]Status{
		certificateNotice: Wrong, certificateNotice + time.Second: OK,
	} {
		d := &doctor{now: func() time.Time { return now }}
		d.checkCertificate("certificate", "NATS", &x509.Certificate{NotAfter: now.Add(left)})
		require.Equal(t, want, d.findings[0].Status)
	}
}

// The command fails only if something is wrong.
func TestDiagnosisRefusal(t *testing.T) {
	t.Parallel()
	d := Diagnosis{Data: []Finding{{Status: OK}, {Status: Advice}, {Status: Unknown}}}
	require.NoError(t, d.Refusal())
	d.Data = append(d.Data, Finding{Status: Wrong})
	require.ErrorContains(t, d.Refusal(), "One check")
}

// TestDiagnoseStandbys checks the findings about each server of READ_DATABASE_URL.
func TestDiagnoseStandbys(t *testing.T) {
	t.Parallel()
	primary := dbtest.NewPrimary(t)
	standby := primary.NewStandby("hot_standby_feedback = on", "max_standby_streaming_delay = 1s")
	s, err := store.Open(t.Context(), primary.URL, store.Operator)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	diagnose := func(url string) (findings []Finding) {
		d := &doctor{store: s, url: primary.URL, now: time.Now}
		d.options.Standbys.ReadDatabaseURL = config.Secret(url)
		d.checkStandbys(t.Context())
		return d.findings
	}
	require.Empty(t, diagnose(""))

	both := *must(url.Parse(primary.URL))
	both.Host += "," + must(url.Parse(standby.URL)).Host
	findings := diagnose(both.String())
	require.Len(t, findings, 2)
	require.Equal(t, OK, findings[0].Status, findings[0].Message)
	require.Contains(t, findings[0].Message, "the primary now")
	require.Eventually(t, func() bool { // It has just started.
		findings = diagnose(standby.URL)
		return findings[0].Status == OK
	}, time.Minute, 100*time.Millisecond)
	require.Equal(t, "standby "+must(url.Parse(standby.URL)).Host, findings[0].Check)

	for _, setting := range []string{"hot_standby_feedback = off", "max_standby_streaming_delay = -1"} {
		standby.Set(setting)
		name, _, _ := strings.Cut(setting, " ")
		require.Eventually(t, func() bool {
			findings = diagnose(standby.URL)
			return findings[0].Status == Advice && strings.Contains(*findings[0].Fix, name)
		}, time.Minute, 100*time.Millisecond, name)
	}
	require.NoError(t, standby.Kill())
	findings = diagnose(standby.URL)
	require.Equal(t, Wrong, findings[0].Status)
	require.Contains(t, findings[0].Message, "does not answer")
	findings = diagnose(dbtest.New(t).URL)
	require.Equal(t, Wrong, findings[0].Status)
	require.Contains(t, findings[0].Message, "is not a standby of the primary")
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// TestDiagnoseAlerts checks that doctor notices when nobody evaluates alerts, and when mails fail or wait.
func TestDiagnoseAlerts(t *testing.T) {
	t.Parallel()
	e := newDoctorEnv(t)
	require.Equal(t, Advice, e.diagnose(t)["alerts"].Status)
	e.exec(t, `WITH team AS (INSERT INTO teams (name) VALUES ('t') RETURNING id),
		person AS (INSERT INTO users (email) VALUES ('x@example.com') RETURNING id),
		member AS (INSERT INTO memberships (user_id, team_id, role) SELECT person.id, team.id, 'viewer' FROM person, team),
		choice AS (INSERT INTO mail_choices (user_id, team_id, alerts, morning, weekly)
			SELECT person.id, team.id, true, false, false FROM person, team),
		mail AS (INSERT INTO mails (user_id, team_id, kind) SELECT person.id, team.id, 'alerts' FROM person, team)
		INSERT INTO alert_rounds (team_id, attempted_at, evaluated_at) SELECT id, now(), now() FROM team`)
	findings := e.diagnose(t)
	require.Equal(t, OK, findings["alerts"].Status)
	require.Equal(t, OK, findings["mails"].Status)
	e.exec(t, `UPDATE alert_rounds SET evaluated_at = now() - interval '11 minutes'`)
	require.Contains(t, e.diagnose(t)["alerts"].Message, "The alerts of 1 teams could not be evaluated")
	e.exec(t, `UPDATE alert_rounds SET attempted_at = evaluated_at`)
	e.exec(t, `UPDATE mails SET created_at = now() - interval '16 minutes', error = '451 later'`)
	findings = e.diagnose(t)
	require.Equal(t, Wrong, findings["alerts"].Status)
	require.Contains(t, findings["mails"].Message, "that have waited for more than 15 minutes: 1. The newest reason: 451 later.")
	e.exec(t, `UPDATE mails SET done_at = now()`)
	require.Contains(t, e.diagnose(t)["mails"].Message, "Mails that failed in the last day: 1;")
}

// TestChecksums does not need a server with damaged pages.
func TestChecksums(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		server ops.Server
		want   Status
	}{
		{ops.Server{HasChecksums: true}, OK},
		{ops.Server{}, Advice},
		{ops.Server{HasChecksums: true, ChecksumFailures: 1}, Wrong},
	} {
		var d doctor
		d.checkChecksums(&c.server)
		require.Len(t, d.findings, 1)
		require.Equal(t, c.want, d.findings[0].Status)
	}
}

// TestCheckRestore checks what an operator learns about a restored database before the processes start.
func TestCheckRestore(t *testing.T) {
	t.Parallel()
	e := newDoctorEnv(t)
	e.declare(t)
	check := func(moment *time.Time) map[string]Finding {
		diagnosis, err := CheckRestore(t.Context(), config.Database{DatabaseURL: config.Secret(e.url)}, e.options.Queue, moment)
		require.NoError(t, err)
		findings := map[string]Finding{}
		for _, f := range diagnosis.Data {
			require.Equal(t, f.Status == OK, f.Fix == nil, f.Message)
			findings[f.Check] = f
		}
		return findings
	}
	require.Equal(t, Wrong, check(nil)["restored moment"].Status, "an empty database")

	team, err := e.operator.CreateTeam(t.Context(), "Team")
	require.NoError(t, err)
	_, err = e.operator.CreateDevice(t.Context(), roomsensor.NewDevice{TeamID: uuid.MustParse(team.ID), HardwareID: "dev:1"})
	require.NoError(t, err)
	stored := func(interval string) {
		e.exec(t, "UPDATE device_state SET last_seen_at = now() + interval '"+interval+"'")
	}
	stored("-1 hour")
	now := time.Now()
	later, earlier := now.Add(time.Hour), now.Add(-2*time.Hour)
	f := check(&later)
	require.Equal(t, Advice, f["restored moment"].Status, f["restored moment"].Message)
	require.Equal(t, OK, f["sessions"].Status)
	require.Equal(t, Wrong, f["replay"].Status)
	require.Contains(t, f["replay"].Message, "is empty")
	require.Equal(t, OK, f["queue stream"].Status)
	require.Equal(t, OK, f["database owner"].Status)
	f = check(&earlier)
	require.Equal(t, Wrong, f["restored moment"].Status, f["restored moment"].Message)

	_, err = e.js.Publish(t.Context(), "uploads.-.dev:1", []byte("{}"))
	require.NoError(t, err)
	e.exec(t, "INSERT INTO sessions VALUES ('x', 'x', now())")
	f = check(nil)
	require.Contains(t, f["replay"].Message, "are neither in the database nor in the stream")
	require.Equal(t, Wrong, f["sessions"].Status)
	stored("1 minute")
	f = check(nil)
	require.Equal(t, OK, f["replay"].Status, f["replay"].Message)
	require.Equal(t, OK, f["restored moment"].Status, f["restored moment"].Message)
	require.NoError(t, e.js.DeleteStream(t.Context(), queue.StreamName))
	require.Contains(t, check(nil)["replay"].Message, "There is no stream")
}
