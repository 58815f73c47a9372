package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	dto "github.com/prometheus/client_model/go"

	"roomsensor/internal/retry"
	"roomsensor/test/proctest"
)

// pauseStandby lets the standby receive and confirm the log, but not replay it.
func (f *faults) pauseStandby(ctx context.Context) error {
	return f.underReads(ctx, []string{"lag", "left_out"}, func(ctx context.Context) error {
		standby := f.database.standby
		f.begin(standby.member)
		if err := f.database.exec(ctx, standby, "SELECT pg_wal_replay_pause()"); err != nil {
			return err
		}
		if err := retry.Sleep(ctx, f.options.Down); err != nil {
			return err
		}
		return f.database.exec(ctx, standby, "SELECT pg_wal_replay_resume()")
	})
}

// killStandby kills the standby, and starts it again with its data.
func (f *faults) killStandby(ctx context.Context) error {
	return f.interruptStandby(ctx, (*container).kill, (*container).restart)
}

// disconnectStandby leaves the standby running: connections to it hang.
func (f *faults) disconnectStandby(ctx context.Context) error {
	return f.interruptStandby(ctx, (*container).disconnect, (*container).reconnect)
}

// interruptStandby removes the standby for a time. Commits wait for it until the setting of the primary is
// changed, as an operator does.
func (f *faults) interruptStandby(ctx context.Context, remove, restore func(*container, context.Context) error) error {
	return f.underReads(ctx, []string{"error", "timeout", "left_out"}, func(ctx context.Context) error {
		standby := f.database.standby
		f.begin(standby.member)
		if err := remove(standby, ctx); err != nil {
			return err
		}
		if err := retry.Sleep(ctx, f.options.Detect); err != nil {
			return err
		}
		if err := f.database.setSynchronous(ctx, f.database.primary, ""); err != nil {
			return err
		}
		if err := retry.Sleep(ctx, f.options.Down); err != nil {
			return err
		}
		if err := restore(standby, ctx); err != nil {
			return err
		}
		return f.awaitStandby(ctx)
	})
}

// conflictPause is the time between two changes with which reads on the standby conflict.
const conflictPause = 100 * time.Millisecond

// cancelReads lets the standby cancel every read that conflicts with the log at once, while the primary removes rows,
// rewrites a chunk and drops chunks.
func (f *faults) cancelReads(ctx context.Context) error {
	return f.underReads(ctx, []string{"conflict"}, func(ctx context.Context) error {
		primary, standby := f.database.primary, f.database.standby
		chunk, err := f.smallestChunk(ctx)
		if err != nil {
			return err
		}
		f.begin(standby.member)
		if err := f.database.exec(ctx, standby, "ALTER SYSTEM SET max_standby_streaming_delay = 0",
			"ALTER SYSTEM SET hot_standby_feedback = off", "SELECT pg_reload_conf()"); err != nil {
			return err
		}
		err = f.database.exec(ctx, primary, "CREATE TABLE vacuumed AS SELECT generate_series(1, 100) AS n")
		for ends := time.Now().Add(f.options.Down); err == nil && time.Now().Before(ends); {
			if err = f.conflict(ctx, chunk); err == nil {
				err = retry.Sleep(ctx, conflictPause)
			}
		}
		return errors.Join(err, f.database.exec(ctx, primary, "DROP TABLE vacuumed"),
			f.database.exec(ctx, standby, "ALTER SYSTEM RESET max_standby_streaming_delay",
				"ALTER SYSTEM RESET hot_standby_feedback", "SELECT pg_reload_conf()"))
	})
}

// smallestChunk returns the name of the smallest chunk that has readings of the archive.
func (f *faults) smallestChunk(ctx context.Context) (name string, err error) {
	return name, f.database.query(ctx, f.database.primary, func(ctx context.Context, conn *pgx.Conn) error {
		return conn.QueryRow(ctx, `
			SELECT format('%I.%I', chunk_schema, chunk_name) FROM timescaledb_information.chunks
			WHERE hypertable_name = 'readings' AND range_end > $1 AND range_start < $2
			ORDER BY pg_table_size(format('%I.%I', chunk_schema, chunk_name)::regclass) LIMIT 1`,
			f.archive.from, f.archive.to).Scan(&name)
	})
}

// conflict makes changes on the primary that a standby can replay only if no transaction of its own is in the way. It
// gives up on a lock that the service holds.
func (f *faults) conflict(ctx context.Context, chunk string) error {
	return f.database.query(ctx, f.database.primary, func(ctx context.Context, conn *pgx.Conn) error {
		for _, sql := range []string{
			"SET lock_timeout = '500ms'",
			"UPDATE vacuumed SET n = n + 1",
			"VACUUM vacuumed",
			fmt.Sprintf("INSERT INTO readings (device_id, bucket_at) VALUES ('%s', '2001-01-01Z')", f.fleet.Excluded[0]),
			"SELECT drop_chunks('readings', TIMESTAMPTZ '2002-01-01Z')",
			"VACUUM FULL " + chunk,
		} {
			_, err := conn.Exec(ctx, sql)
			const lockNotAvailable, deadlockDetected = "55P03", "40P01"
			refused, ok := errors.AsType[*pgconn.PgError](err)
			if err != nil && (!ok || refused.Code != lockNotAvailable && refused.Code != deadlockDetected) {
				return fmt.Errorf("%s: %w", sql, err)
			}
		}
		return nil
	})
}

// underReads carries out a fault of the standby while clients read, until the standby serves them again. The fault must
// make the primary serve some of their reads, for one of the reasons.
func (f *faults) underReads(ctx context.Context, reasons []string, do func(context.Context) error) error {
	before, err := f.standbyReads(ctx)
	if err != nil {
		return err
	}
	stop := f.reads.start(ctx, f.env, f.event().Fault)
	defer stop()
	if err := f.await(ctx, "reads on the standby", f.checkReadsAfter(before)); err != nil {
		return err
	}
	if before, err = f.standbyReads(ctx); err != nil {
		return err
	}
	if err := do(ctx); err != nil {
		return err
	}
	if err := f.await(ctx, "the standby to be used", f.checkStandbyUsed); err != nil {
		return err
	}
	after, err := f.standbyReads(ctx)
	if err != nil {
		return err
	}
	if err := f.await(ctx, "reads on the standby", f.checkReadsAfter(after)); err != nil {
		return err
	}
	f.note("%s", stop())
	if len(f.reads.known()) == 0 {
		f.Unexpected("%s: no reading was committed that a read could lack", f.event().Fault)
	}
	f.noteFallbacks(before, after, reasons)
	return nil
}

func (f *faults) noteFallbacks(before, after *standbyReads, reasons []string) {
	expected, text := 0, ""
	for _, reason := range slices.Sorted(maps.Keys(after.fallbacks)) {
		n := after.fallbacks[reason] - before.fallbacks[reason]
		if n > 0 {
			text += fmt.Sprintf(", %s %d", reason, n)
		}
		if slices.Contains(reasons, reason) {
			expected += n
		}
	}
	f.note("on the standby %d%s", after.served-before.served, text)
	if expected == 0 {
		f.Unexpected("%s: the primary served no read instead of the standby", f.event().Fault)
	}
}

// standbyReads are the metrics of the reads of all APIs.
type standbyReads struct {
	served    int
	fallbacks map[string]int // by reason
	unused    []string       // the APIs that do not read from the standby
}

var (
	errStandbyUnused = errors.New("an API does not read from the standby")
	errNoReads       = errors.New("no read was served by the standby")
)

// checkStandbyUsed returns nil if every API reads from the standby.
func (e *env) checkStandbyUsed(ctx context.Context) error {
	now, err := e.standbyReads(ctx)
	if err == nil && len(now.unused) > 0 {
		err = fmt.Errorf("%w: %s", errStandbyUnused, strings.Join(now.unused, ", "))
	}
	return err
}

// checkReadsAfter returns nil if the standby has served reads since some metrics were read.
func (e *env) checkReadsAfter(before *standbyReads) func(context.Context) error {
	return func(ctx context.Context) error {
		now, err := e.standbyReads(ctx)
		if err == nil && now.served == before.served {
			err = errNoReads
		}
		return err
	}
}

// standbyReads reads the metrics of all APIs.
func (e *env) standbyReads(ctx context.Context) (*standbyReads, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	r := &standbyReads{fallbacks: map[string]int{}}
	for _, member := range apiRole.members() {
		metrics, err := proctest.Metrics(ctx, e.ops[member])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", member, err)
		}
		if !r.add(metrics, e.database.standby.member) {
			r.unused = append(r.unused, member)
		}
	}
	return r, nil
}

// add adds the metrics of an API, and reports whether it reads from a standby. Each of these metrics has one label.
func (r *standbyReads) add(families map[string]*dto.MetricFamily, standby string) (used bool) {
	const prefix = "roomsensor_database_standby_"
	for _, m := range families[prefix+"reads_total"].GetMetric() {
		r.served += int(m.GetCounter().GetValue())
	}
	for _, m := range families[prefix+"fallbacks_total"].GetMetric() {
		r.fallbacks[m.GetLabel()[0].GetValue()] += int(m.GetCounter().GetValue())
	}
	for _, m := range families[prefix+"used"].GetMetric() {
		if m.GetLabel()[0].GetValue() == standby+":5432" {
			used = m.GetGauge().GetValue() == 1
		}
	}
	return used
}
