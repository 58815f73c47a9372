package backup_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"roomsensor/client/localcopy"
	"roomsensor/internal/roomsensor"
	"roomsensor/test/harness"
)

const (
	// upgradesVariable runs all drills if it is "all".
	upgradesVariable = "ROOMSENSOR_UPGRADES"
	// oldProgramsVariable is the directory of the programs of the old PostgreSQL. Without it, the old one has the version
	// of the new one, because Debian has TimescaleDB for one version only.
	oldProgramsVariable = "ROOMSENSOR_OLD_POSTGRES"
	// oldTimescaleDBVariable is an older version of TimescaleDB that the server has beside its default. The default must be
	// the Community edition.
	oldTimescaleDBVariable = "ROOMSENSOR_OLD_TIMESCALEDB"
	// oldDevicesVariable is the number of devices that have 90 days of readings before the upgrade.
	oldDevicesVariable = "ROOMSENSOR_OLD_DEVICES"
)

// upgrade is a drill that upgrades PostgreSQL or TimescaleDB.
type upgrade struct {
	*drill
	page   []string // the blocks of database-upgrades.md
	copied *oldCopy // of a client
	old    string   // oldReadings
}

// TestUpgradeWithLinks upgrades with pg_upgrade --link, goes back before the new server has started, and upgrades again.
// It takes half a minute.
func TestUpgradeWithLinks(t *testing.T) {
	t.Parallel()
	needAll(t)
	u := newUpgrade(t, 4)
	u.variables["MODE"] = "--link"
	u.do("create the new server", createServer)
	u.outage(func() {
		u.do("upgrade", upgradeFiles)
		u.do("go back", goBackBeforeStart)
	})
	u.do("create the new server", createServer)
	u.outage(func() {
		u.do("upgrade", upgradeFiles)
		u.do("start the new server", startServer)
		u.migrateAndCheck()
	})
	u.finish()
	u.sync()
}

// TestUpgradeWithCopy upgrades with pg_upgrade and a copy of the files, and goes back. It takes half a minute.
func TestUpgradeWithCopy(t *testing.T) {
	t.Parallel()
	u := newUpgrade(t, 5)
	u.variables["MODE"] = "--copy"
	u.do("create the new server", createServer)
	u.outage(func() {
		u.do("upgrade", upgradeFiles)
		u.do("start the new server", startServer)
		u.migrateAndCheck()
	})
	u.goBack()
}

// TestUpgradeWithDump upgrades with a dump, and goes back. It takes half a minute.
func TestUpgradeWithDump(t *testing.T) {
	t.Parallel()
	needAll(t)
	u := newUpgrade(t, 6)
	u.do("create the new server", createServer)
	u.outage(func() {
		u.step(u.account, "dump", dump)
		u.do("switch the servers", switchServers)
		u.restoreDump()
		u.migrateAndCheck()
	})
	u.goBack()
}

func needAll(t *testing.T) {
	t.Helper()
	if os.Getenv(upgradesVariable) != "all" {
		t.Skipf("takes long: %s=all runs it", upgradesVariable)
	}
}

// TestUpgradeTimescaleDB upgrades TimescaleDB, then from Apache to Community, and back to Apache. It takes a minute.
func TestUpgradeTimescaleDB(t *testing.T) {
	t.Parallel()
	old := os.Getenv(oldTimescaleDBVariable)
	if old == "" {
		t.Skip("needs the Community edition of TimescaleDB and an older version, which " + oldTimescaleDBVariable + " names")
	}
	e := newEnv(t)
	e.setLicense("apache")
	e.shell(e.account, `psql "$DATABASE_URL" --command="CREATE EXTENSION timescaledb VERSION '$OLD'"`, "OLD="+old)
	u := e.beginUpgrade(7)
	u.outage(func() {
		u.do("update the extension", updateExtension)
		u.migrate()
	})
	u.outage(func() {
		u.setLicense("timescale")
		u.migrate()
		u.compress() // A writer would make it fail.
	})
	u.outage(func() {
		u.do("leave the Community edition", leaveCommunity)
		u.setLicense("apache")
		u.migrate()
	})
	u.sync()
	u.finish()
}

// setLicense sets the edition of TimescaleDB.
func (e *env) setLicense(license string) {
	e.t.Helper()
	e.shell(e.account, `echo "timescaledb.license = '$LICENSE'" >>"$PGDATA/postgresql.conf"
pg_ctl restart --pgdata="$PGDATA" --log="$PGLOG" --wait --silent`, "LICENSE="+license)
}

// newUpgrade starts a service on the old server, units that upload, and a client that keeps a copy.
func newUpgrade(t *testing.T, seed uint64) *upgrade {
	t.Helper()
	e := newEnv(t)
	e.startOldServer()
	return e.beginUpgrade(seed)
}

func (e *env) beginUpgrade(seed uint64) *upgrade {
	e.t.Helper()
	e.newFleet()
	e.fill()
	e.startAPIAndWorker()
	e.startReceiver()
	u := &upgrade{
		drill: e.begin(seed), page: shellBlocks(e.t, "database-upgrades.md"),
		copied: &oldCopy{e, filepath.Join(e.Dir, "copy.db"), e.fleet.Teams[0].Key}, old: e.oldReadings(),
	}
	u.sync()
	return u
}

// startOldServer replaces the server by one of the old version, and sets the variables of the page.
func (e *env) startOldServer() {
	e.t.Helper()
	server, err := url.Parse(e.variables["DATABASE_URL"])
	require.NoError(e.t, err)
	secret, _ := server.User.Password()
	dir := filepath.Dir(e.variables["PGDATA"])
	var programs string
	e.value(&programs, "SELECT setting FROM pg_config WHERE name = 'BINDIR'")
	maps.Copy(e.variables, map[string]string{
		"OLD_BIN": cmp.Or(os.Getenv(oldProgramsVariable), programs), "OLD_DATA": e.variables["PGDATA"],
		"NEW_BIN": programs, "NEW_DATA": filepath.Join(dir, "pgdata.upgraded"), "PGPASSWORD": secret,
		"INITDB": "--username=postgres --encoding=UTF8 --locale=C --data-checksums --auth=scram-sha-256 --pwfile=" +
			filepath.Join(dir, "password"),
	})
	e.shell(e.account, `"$NEW_BIN/pg_ctl" stop --pgdata="$OLD_DATA" --mode=fast --silent
echo "$PGPASSWORD" >"${INITDB##*=}"
mv "$OLD_DATA" "$OLD_DATA.first"
"$OLD_BIN/initdb" --pgdata="$OLD_DATA" $INITDB
sed "s,^unix_socket_directories.*,unix_socket_directories = '$BACKUP'," \
	"$OLD_DATA.first/roomsensor.conf" >>"$OLD_DATA/postgresql.conf"
"$OLD_BIN/pg_ctl" start --pgdata="$OLD_DATA" --log="$PGLOG" --wait --silent
psql "$ADMIN_URL" --command="CREATE DATABASE roomsensor"`)
	e.OnClose(func(context.Context) error {
		//nolint:contextcheck // Cleanup outlives the context of the test.
		e.shell(e.account, `! [ -e "$NEW_DATA/postmaster.pid" ] || "$NEW_BIN/pg_ctl" stop --pgdata="$NEW_DATA" --mode=immediate`)
		return nil
	})
}

// do runs a block of database-upgrades.md as the user of PostgreSQL.
func (u *upgrade) do(name string, block int) {
	u.t.Helper()
	began := time.Now()
	u.run(u.account, name, u.page[block])
	u.Logf("took %s", harness.Seconds(time.Since(began)))
}

// outage runs steps while API and workers are stopped. The receiver must go on meanwhile.
func (u *upgrade) outage(steps func()) {
	u.t.Helper()
	u.stop("api", "worker")
	began, received := time.Now(), u.received.Load()
	u.variables["RESTORE_TO"] = roomsensor.FormatTime(u.clock())
	steps()
	u.startAPIAndWorker()
	u.Logf("no worker for %s, %d requests confirmed meanwhile", harness.Seconds(time.Since(began)), u.received.Load()-received)
	require.Greater(u.t, u.received.Load(), received)
	u.awaitMore()
	require.Equal(u.t, u.old, u.oldReadings())
}

// migrateAndCheck runs the last steps before the processes start.
func (u *upgrade) migrateAndCheck() {
	u.t.Helper()
	u.do("let the owner change the roles", grantRoles)
	u.migrate()
	u.check()
}

// goBack goes back to the old server, after the new one has stored readings and a client has seen them.
func (u *upgrade) goBack() {
	u.t.Helper()
	u.sync()
	u.stop("api", "worker")
	before := u.readings()
	u.do("go back", goBackAfterStart)
	u.afterRestore(before, func() {})
	u.finish()
	stderr, ok := u.copied.sync()
	require.False(u.t, ok, "the client saw readings that the old server did not have")
	require.Contains(u.t, stderr, localcopy.ErrForgotten.Error())
}

// sync brings the copy of the client up to date. It must go on from its position.
func (u *upgrade) sync() {
	u.t.Helper()
	stderr, ok := u.copied.sync()
	require.True(u.t, ok, stderr)
	require.NotContains(u.t, stderr, "no longer valid")
}

// fill stores readings of devices that upload no more.
func (e *env) fill() {
	e.t.Helper()
	number, err := strconv.Atoi(cmp.Or(os.Getenv(oldDevicesVariable), "1"))
	require.NoError(e.t, err)
	devices := make([]harness.Device, number)
	for i := range devices {
		devices[i] = harness.Device{ID: uuid.New(), HardwareID: fmt.Sprintf("dev:old-%d", i), Name: "Old"}
		e.fleet.Excluded = append(e.fleet.Excluded, devices[i].ID)
	}
	e.sql(func(ctx context.Context, conn *pgx.Conn) error {
		if _, err := harness.InsertTeam(ctx, conn, "Old", devices); err != nil {
			return err
		}
		_, err := conn.Exec(ctx, `
			INSERT INTO readings (device_id, bucket_at, measured_at, co2_ppm, temp_c, humidity_pct, lux, spl_db)
			SELECT id, b.at, at, 400 + n % 977, 20 + n % 13 / 4.0, 40 + n % 29, n % 501, nullif(40 + n % 17, 48)
			FROM generate_series(1, 90 * 288) n, unnest($1::uuid[]) id,
			     LATERAL (SELECT date_trunc('hour', now(), 'UTC') - n * interval '5 minutes' AS at) b`, e.fleet.Excluded)
		return err
	})
	var license string
	if e.value(&license, "SHOW timescaledb.license"); license != "apache" {
		e.compress()
	}
}

// compress moves old chunks to the columnstore, and stores the hours.
func (e *env) compress() {
	e.t.Helper()
	e.sql(func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, `DO $$ DECLARE c regclass; BEGIN
			FOR c IN SELECT show_chunks('readings', older_than => INTERVAL '30 days')
			LOOP
				BEGIN CALL convert_to_columnstore(c);
				EXCEPTION WHEN duplicate_object THEN NULL; -- The policy was faster.
				END;
			END LOOP;
			END $$`)
		return err
	})
	e.refreshHours()
}

// refreshHours brings the aggregate of the Community edition up to date while nothing is written. A refresh by the policy
// at the same time may have taken a part of it, which is missing until it ends.
func (e *env) refreshHours() {
	e.t.Helper()
	var license string
	if e.value(&license, "SHOW timescaledb.license"); license == "apache" {
		return
	}
	require.Eventually(e.t, func() (all bool) {
		var refused error // While the policy refreshes.
		e.sql(func(ctx context.Context, conn *pgx.Conn) error {
			_, refused = conn.Exec(ctx, "CALL refresh_continuous_aggregate('readings_hourly', NULL, date_trunc('hour', now()))")
			return nil
		})
		e.value(&all, "SELECT count(*) = 1 FROM readings_hourly_valid(now() - interval '90 days', now() - interval '2 hours')")
		return all && refused == nil
	}, stepTimeout, pollInterval)
}

// oldReadings describes what is stored of these devices. The hash is the same in each version of PostgreSQL.
func (e *env) oldReadings() (stored string) {
	e.t.Helper()
	e.sql(func(ctx context.Context, conn *pgx.Conn) error {
		return conn.QueryRow(ctx, `
			SELECT format('%s readings %s, %s hours %s', r.n, r.hash, h.n, h.hash) FROM
			(SELECT count(*) AS n, sum(hashtextextended(r::text, 0)::numeric) AS hash
			 FROM readings r WHERE device_id = ANY ($1)) r,
			(SELECT count(*) AS n, sum(hashtextextended(r::text, 0)::numeric) AS hash
			 FROM readings_hourly r WHERE device_id = ANY ($1)) h`, e.fleet.Excluded).Scan(&stored)
	})
	return stored
}

func (e *env) sql(run func(context.Context, *pgx.Conn) error) {
	e.t.Helper()
	s := harness.Service{DatabaseURL: func() string { return e.variables["DATABASE_URL"] + "&timezone=UTC" }}
	require.NoError(e.t, s.Query(e.t.Context(), run))
}
