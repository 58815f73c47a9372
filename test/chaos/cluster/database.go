package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"roomsensor/test/proctest"
)

// databaseMembers are the two database servers. Each of them can be the primary.
var databaseMembers = []string{"postgres-1", "postgres-2"}

// password is not a secret: only the trial can reach the servers.
const password = "cluster"

// pair is a primary and its standby.
type pair struct {
	primary, standby *container
	ports            map[string]string // addresses on this machine, by member
}

// hbaConf allows members and standbys to connect.
const hbaConf = `local all postgres trust
host all postgres all scram-sha-256
host replication postgres all scram-sha-256
`

// serverCommand starts either server: each can become the primary.
var serverCommand = []string{
	"postgres", "-c", "hba_file=/pg_hba.conf", "-c", "max_locks_per_transaction=256",
	"-c", "timescaledb.telemetry_level=off", "-c", "max_connections=200",
}

// standbyScript copies the primary, unless it did before, and runs as its standby. The standby is named by
// cluster_name; pg_basebackup has another name, because the primary would wait for it as for the standby. The slot
// makes the primary keep the WAL that the standby has not received.
const standbyScript = `set -e
primary=$1 name=$2
shift 2
[ -s "$PGDATA/PG_VERSION" ] ||
  pg_basebackup --dbname="host=$primary user=postgres" --pgdata="$PGDATA" --write-recovery-conf --checkpoint=fast \
    --create-slot --slot="$(echo "$name" | tr - _)"
chmod 700 "$PGDATA"
exec "$@" -c cluster_name="$name"
`

// startDatabase starts a primary and its standby.
func (e *env) startDatabase(ctx context.Context) error {
	e.database = &pair{ports: map[string]string{}}
	for _, m := range databaseMembers {
		var err error
		if e.database.ports[m], err = proctest.FreeAddress(); err != nil {
			return err
		}
	}
	e.readDatabaseURL = serverURL(databaseMembers[0]+":5432", databaseMembers[1]+":5432")
	e.databaseURL = e.readDatabaseURL + onlyPrimary
	ports := e.database.ports
	outside := serverURL(ports[databaseMembers[0]], ports[databaseMembers[1]]) + onlyPrimary + "&connect_timeout=3"
	e.service.DatabaseURL = func() string { return outside }

	s := e.databaseSpec(databaseMembers[0])
	s.options = append(s.options, "--env", "POSTGRES_DB=roomsensor")
	s.command = serverCommand
	if err := e.start(ctx, s); err != nil {
		return err
	}
	e.database.primary = e.members[databaseMembers[0]]
	if err := e.await(ctx, "the primary to answer", e.checkPrimary); err != nil {
		return err
	}
	return e.addStandby(ctx, databaseMembers[1])
}

// onlyPrimary makes clients choose the server that accepts writes.
const onlyPrimary = "&target_session_attrs=read-write"

func serverURL(hosts ...string) string {
	return "postgres://postgres:" + password + "@" + strings.Join(hosts, ",") + "/roomsensor?sslmode=prefer"
}

func (e *env) databaseSpec(member string) *spec {
	return &spec{
		member: member, image: e.options.Images.Database, ports: map[string]string{"5432": e.database.ports[member]},
		options: []string{"--shm-size", "256m", "--env", "POSTGRES_PASSWORD=" + password, "--env", "PGPASSWORD=" + password},
		files:   []file{{"/pg_hba.conf", hbaConf}},
	}
}

func (e *env) checkPrimary(ctx context.Context) error {
	return e.database.exec(ctx, e.database.primary, "SELECT 1")
}

// addStandby starts a standby without data.
func (e *env) addStandby(ctx context.Context, member string) error {
	s := e.databaseSpec(member)
	s.options = append(s.options, "--user", "postgres", "--entrypoint", "sh")
	s.command = append([]string{"-c", standbyScript, "sh", e.database.primary.member, member}, serverCommand...)
	if err := e.start(ctx, s); err != nil {
		return err
	}
	e.database.standby = e.members[member]
	return e.awaitStandby(ctx)
}

// awaitStandby waits until the standby streams. Unless the trial is asynchronous, commits then wait for it.
func (e *env) awaitStandby(ctx context.Context) error {
	if err := e.await(ctx, "the standby to stream", e.checkStandby("async")); err != nil || e.options.Asynchronous {
		return err
	}
	if err := e.database.setSynchronous(ctx, e.database.primary, `"`+e.database.standby.member+`"`); err != nil {
		return err
	}
	return e.await(ctx, "the standby to be synchronous", e.checkStandby("sync"))
}

// setSynchronous names the standby that commits of a server wait for; empty means none.
func (p *pair) setSynchronous(ctx context.Context, server *container, standby string) error {
	return p.exec(ctx, server,
		fmt.Sprintf("ALTER SYSTEM SET synchronous_standby_names = '%s'", standby), "SELECT pg_reload_conf()")
}

var errNoStandby = errors.New("the standby is not streaming")

// checkStandby returns nil if the standby is streaming with the given sync_state and answers queries.
func (e *env) checkStandby(sync string) func(context.Context) error {
	return func(ctx context.Context) error {
		var streaming bool
		err := e.database.query(ctx, e.database.primary, func(ctx context.Context, conn *pgx.Conn) error {
			return conn.QueryRow(ctx, `
				SELECT EXISTS (SELECT FROM pg_stat_replication
				WHERE application_name = $1 AND state = 'streaming' AND sync_state = $2)`,
				e.database.standby.member, sync).Scan(&streaming)
		})
		if err == nil && !streaming {
			err = errNoStandby
		}
		return errors.Join(err, e.database.exec(ctx, e.database.standby, "SELECT 1"))
	}
}

var errStandbyUnused = errors.New("an API does not read from the standby")

// checkStandbyUsed returns nil if every API reads from the standby.
func (e *env) checkStandbyUsed(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	var unused []string
	for _, member := range apiRole.members() {
		metrics, err := proctest.Metrics(ctx, e.ops[member])
		if err != nil {
			return fmt.Errorf("%s: %w", member, err)
		}
		used := false
		for _, m := range metrics["roomsensor_database_standby_used"].GetMetric() { // Its only label is the standby.
			used = used || m.GetLabel()[0].GetValue() == e.database.standby.member+":5432" && m.GetGauge().GetValue() == 1
		}
		if !used {
			unused = append(unused, member)
		}
	}
	if len(unused) > 0 {
		return fmt.Errorf("%w: %s", errStandbyUnused, strings.Join(unused, ", "))
	}
	return nil
}

// promote promotes the standby. Its commits must not wait for a standby, because it has none yet.
func (p *pair) promote(ctx context.Context) error {
	err := errors.Join(p.setSynchronous(ctx, p.standby, ""), p.exec(ctx, p.standby, "SELECT pg_promote()"))
	p.primary, p.standby = p.standby, p.primary
	return err
}

// exec executes statements on one of the servers.
func (p *pair) exec(ctx context.Context, server *container, statements ...string) error {
	return p.query(ctx, server, func(ctx context.Context, conn *pgx.Conn) error {
		for _, sql := range statements {
			if _, err := conn.Exec(ctx, sql); err != nil {
				return fmt.Errorf("%s on %s: %w", sql, server.member, err)
			}
		}
		return nil
	})
}

// requestTimeout bounds a request to one member on a busy machine.
const requestTimeout = 15 * time.Second

func (p *pair) query(ctx context.Context, server *container, f func(context.Context, *pgx.Conn) error) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, "postgres://postgres:"+password+"@"+p.ports[server.member]+"/roomsensor")
	if err != nil {
		return fmt.Errorf("connecting to %s: %w", server.member, err)
	}
	defer func() { _ = conn.Close(ctx) }()
	return f(ctx, conn)
}
