package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"roomsensor/internal/procs"
)

// The names of the two databases; which of them is the primary changes.
var databaseMembers = []string{"postgres-1", "postgres-2"}

// password is no secret: nobody reaches the servers but the trial.
const password = "cluster"

// pair is a primary and its standby.
type pair struct {
	primary, standby *container
	asynchronous     bool // see Options
	image            string
	ports            map[string]string // by member, on this machine
}

// accessConf lets members in, and standbys.
const accessConf = `local all postgres trust
host all postgres all scram-sha-256
host replication postgres all scram-sha-256
`

// settings are those of both servers, so that either can take the other's place.
var settings = []string{
	"postgres", "-c", "hba_file=/pg_hba.conf", "-c", "max_locks_per_transaction=256",
	"-c", "timescaledb.telemetry_level=off", "-c", "max_connections=200",
}

// standbyScript copies the primary, and then is its standby. cluster_name is how the primary knows it: the standby
// alone goes by that name, and not the copying, for which the primary would wait as if it were the standby. The slot
// makes the primary keep what the standby lacks.
const standbyScript = `set -e
primary=$1 name=$2
shift 2
pg_basebackup --dbname="host=$primary user=postgres" --pgdata="$PGDATA" --write-recovery-conf --checkpoint=fast \
  --create-slot --slot="$(echo "$name" | tr - _)"
chmod 700 "$PGDATA"
exec "$@" -c cluster_name="$name"
`

// startDatabase starts a primary, and a standby of it.
func (w *world) startDatabase(ctx context.Context) error {
	w.database = &pair{asynchronous: w.options.Asynchronous, image: w.options.Images.Database, ports: map[string]string{}}
	for _, m := range databaseMembers {
		var err error
		if w.database.ports[m], err = procs.FreeAddress(); err != nil {
			return err
		}
	}
	w.databaseURL = databaseURL(inside(databaseMembers[0], "5432"), inside(databaseMembers[1], "5432"))
	ports := w.database.ports
	outside := databaseURL(ports[databaseMembers[0]], ports[databaseMembers[1]]) + "&connect_timeout=3"
	w.trial.DatabaseURL = func() string { return outside }

	p := w.databasePlan(databaseMembers[0])
	p.options = append(p.options, "--env", "POSTGRES_DB=roomsensor")
	p.command = settings
	if err := w.start(ctx, p); err != nil {
		return err
	}
	w.database.primary = w.members[databaseMembers[0]]
	if err := w.await(ctx, "the primary", w.primaryAnswers); err != nil {
		return err
	}
	return w.addStandby(ctx, databaseMembers[1])
}

// databaseURL names both servers: whichever takes writes is the one.
func databaseURL(hosts ...string) string {
	return "postgres://postgres:" + password + "@" + strings.Join(hosts, ",") +
		"/roomsensor?target_session_attrs=read-write"
}

func (w *world) databasePlan(member string) *plan {
	return &plan{
		member: member, image: w.database.image, ports: map[string]string{"5432": w.database.ports[member]},
		options: []string{"--shm-size", "256m", "--env", "POSTGRES_PASSWORD=" + password, "--env", "PGPASSWORD=" + password},
		files:   []file{{"/pg_hba.conf", accessConf}},
	}
}

func (w *world) primaryAnswers(ctx context.Context) error {
	return w.database.on(ctx, w.database.primary, "SELECT 1")
}

// addStandby makes a standby of the primary, on empty disks, and lets the primary wait for it at every commit.
func (w *world) addStandby(ctx context.Context, member string) error {
	p := w.databasePlan(member)
	p.options = append(p.options, "--user", "postgres", "--entrypoint", "sh")
	p.command = append([]string{"-c", standbyScript, "sh", w.database.primary.member, member}, settings...)
	if err := w.start(ctx, p); err != nil {
		return err
	}
	w.database.standby = w.members[member]
	if err := w.await(ctx, "the standby", w.standbyFollows("async")); err != nil || w.database.asynchronous {
		return err
	}
	if err := w.database.waitFor(ctx, w.database.primary, `"`+member+`"`); err != nil {
		return err
	}
	return w.await(ctx, "a synchronous standby", w.standbyFollows("sync"))
}

// waitFor names the standby for which a server waits at every commit; empty: none.
func (p *pair) waitFor(ctx context.Context, server *container, standby string) error {
	return p.on(ctx, server,
		fmt.Sprintf("ALTER SYSTEM SET synchronous_standby_names = '%s'", standby), "SELECT pg_reload_conf()")
}

var errNoStandby = errors.New("the standby does not follow")

// standbyFollows asks the primary, and the standby whether it answers.
func (w *world) standbyFollows(sync string) func(context.Context) error {
	return func(ctx context.Context) error {
		var follows bool
		err := w.database.ask(ctx, w.database.primary, func(ctx context.Context, conn *pgx.Conn) error {
			return conn.QueryRow(ctx, `
				SELECT EXISTS (SELECT FROM pg_stat_replication
				WHERE application_name = $1 AND state = 'streaming' AND sync_state = $2)`,
				w.database.standby.member, sync).Scan(&follows)
		})
		if err == nil && !follows {
			err = errNoStandby
		}
		return errors.Join(err, w.database.on(ctx, w.database.standby, "SELECT 1"))
	}
}

// promote makes the standby the primary. It first forgets the standby for which the dead primary waited: nobody is
// there to confirm its commits.
func (p *pair) promote(ctx context.Context) error {
	err := errors.Join(p.waitFor(ctx, p.standby, ""), p.on(ctx, p.standby, "SELECT pg_promote()"))
	p.primary, p.standby = p.standby, p.primary
	return err
}

// on runs statements on one of the servers.
func (p *pair) on(ctx context.Context, server *container, statements ...string) error {
	return p.ask(ctx, server, func(ctx context.Context, conn *pgx.Conn) error {
		for _, sql := range statements {
			if _, err := conn.Exec(ctx, sql); err != nil {
				return fmt.Errorf("%s on %s: %w", sql, server.member, err)
			}
		}
		return nil
	})
}

// lookTimeout bounds a question to one member, on a machine that may be busy.
const lookTimeout = 15 * time.Second

func (p *pair) ask(ctx context.Context, server *container, question func(context.Context, *pgx.Conn) error) error {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, "postgres://postgres:"+password+"@"+p.ports[server.member]+"/roomsensor")
	if err != nil {
		return fmt.Errorf("connecting to %s: %w", server.member, err)
	}
	defer func() { _ = conn.Close(ctx) }()
	return question(ctx, conn)
}
