package abuse

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"roomsensor/internal/retry"
	"roomsensor/internal/roomsensor"
	"roomsensor/test/harness"
	"roomsensor/test/proctest"
)

// execute executes a statement.
func (e *env) execute(ctx context.Context, sql string, args ...any) error {
	return e.service.Query(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		if _, err := conn.Exec(ctx, sql, args...); err != nil {
			return fmt.Errorf("executing %.40q: %w", sql, err)
		}
		return nil
	})
}

// number returns the result of a query for one number.
func (e *env) number(ctx context.Context, sql string, args ...any) (n float64, err error) {
	err = e.service.Query(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		if err := conn.QueryRow(ctx, sql, args...).Scan(&n); err != nil {
			return fmt.Errorf("querying %.40q: %w", sql, err)
		}
		return nil
	})
	return n, err
}

// keptRejects is the number of rejects of the tenant.
const keptRejects = 10

const countRejects = "SELECT count(*)::float8 FROM rejected_uploads WHERE team_id = $1"

// keepRejects makes rejects of the tenant, unless there are some from an earlier round.
func keepRejects(ctx context.Context, e *env) error {
	receiver := harness.NewReceiver(e.receiver.Address, 1)
	defer receiver.Close()
	have, err := e.number(ctx, countRejects, e.team.id)
	for i := 0; i < keptRejects && have == 0 && err == nil; i++ {
		body := upload(fmt.Sprintf("dev:77%04d", i), e.history, time.Minute, 1)
		_, err = receiver.PostUntilStored(ctx, e.team.credentials[0], []byte(body))
	}
	if err != nil {
		return err
	}
	return harness.Await(ctx, readyTimeout, 50*time.Millisecond, func(ctx context.Context) error {
		have, err := e.number(ctx, countRejects, e.team.id)
		if err == nil && have != keptRejects {
			err = fmt.Errorf("%g rejects of the tenant instead of %d", have, keptRejects)
		}
		return err
	})
}

// bindSource makes a source of the attacker, whose id is that of its team, and binds all its credentials to it. Its
// mapping has as many paths as it may: none of them is in any message, and each is looked for in each measurement.
func bindSource(ctx context.Context, e *env) error {
	paths := make([]string, maxPaths)
	metrics := map[string][]map[string]string{}
	for i := range paths {
		metric := roomsensor.Metrics[i%len(roomsensor.Metrics)].String()
		metrics[metric] = append(metrics[metric], map[string]string{"path": fmt.Sprintf("no%03d", i)})
	}
	mapping, err := json.Marshal(map[string]any{"each": "readings", "unit": "unit", "metrics": metrics, "at": []string{}})
	if err != nil {
		return fmt.Errorf("encoding a mapping: %w", err)
	}
	team := e.attackers["sources"].id
	return errors.Join(
		e.execute(ctx, `INSERT INTO sources (id, team_id, name, format, mapping) VALUES ($1, $1, 'hostile', 'roomsensor', $2)
			ON CONFLICT DO NOTHING`, team, string(mapping)),
		e.execute(ctx, `UPDATE ingest_keys SET source_id = $1 WHERE team_id = $1`, team))
}

// maxPaths is the greatest number of paths of values in a mapping: 100 for each metric.
const maxPaths = 500

// checkOverloaded checks that the receiver took messages of a source, and never answered 429 (A10.6).
func checkOverloaded(_ context.Context, e *env, t Tally) error {
	if t["200"] == 0 || t["503"] == 0 || t["429"] > 0 {
		e.Unexpected("sources: the receiver answered %v", t)
	}
	return nil
}

// checkRejects waits until workers have deleted rejects beyond the limit, which they do once per minute, and checks
// that those of the tenant are still there.
func checkRejects(ctx context.Context, e *env) error {
	const timeout, limit = 2 * time.Minute, 16 << 20
	err := harness.Await(ctx, timeout, time.Second, func(ctx context.Context) error {
		size, err := e.number(ctx, "SELECT coalesce(sum(length(payload)), 0)::float8 FROM rejected_uploads")
		if err == nil && size > limit {
			err = fmt.Errorf("the rejects take %.0f MiB", size/(1<<20))
		}
		return err
	})
	if err != nil {
		e.Unexpected("rejects: the workers did not delete rejects: %v", err)
	}
	have, err := e.number(ctx, countRejects, e.team.id)
	if err == nil && have < keptRejects {
		e.Unexpected("rejects: %g of %d rejects of the tenant are left", have, keptRejects)
	}
	return err
}

// fillRateWindows gives all keys of a team the rate windows of keys that sent 600 requests an hour ago.
func fillRateWindows(ctx context.Context, e *env) error {
	team := e.attackers["returning"].id
	err := e.execute(ctx, `
		INSERT INTO rate_windows (key_id, slot, hit_at)
		SELECT key_id, slot, now() - interval '1 hour' + slot * interval '1 ms'
		FROM api_keys, generate_series(0, 599) slot WHERE team_id = $1
		ON CONFLICT (key_id, slot) DO UPDATE SET hit_at = excluded.hit_at
		WHERE rate_windows.hit_at > now() - interval '30 minutes'`, team)
	if err != nil {
		return err
	}
	err = e.execute(ctx, `
		INSERT INTO rate_counters (key_id, passed, over) SELECT key_id, 600, 0 FROM api_keys WHERE team_id = $1
		ON CONFLICT (key_id) DO UPDATE SET passed = 600, over = 0`, team)
	if err != nil {
		return err
	}
	// Sessions of the service have planned for small tables. Tables that grow by requests are analyzed meanwhile.
	return e.execute(ctx, "ANALYZE rate_windows, rate_counters")
}

func checkReturned(_ context.Context, e *env, t Tally) error {
	if t["200"] != returningKeys {
		e.Unexpected("returning: %d of %d returning keys were served: %v", t["200"], returningKeys, t)
	}
	return nil
}

// setTags gives all devices of a team 50 tags of 500 characters of 4 bytes, the most that the API accepts.
func setTags(ctx context.Context, e *env) error {
	return e.execute(ctx, `
		UPDATE devices SET metadata = (
			SELECT jsonb_object_agg('tag' || n, repeat('🌡', 500)) FROM generate_series(1, 50) n)
		WHERE team_id = $1`, e.attackers["tags"].id)
}

func removeTags(ctx context.Context, e *env) error {
	return e.execute(ctx, "UPDATE devices SET metadata = '{}' WHERE team_id = $1", e.attackers["tags"].id)
}

// insertHistory returns a preparation that inserts the readings of the hours before the trial for the team of an
// attack, unless it has them.
func insertHistory(attack string) func(context.Context, *env) error {
	return func(ctx context.Context, e *env) error {
		t := e.attackers[attack]
		have, err := e.number(ctx, "SELECT count(*)::float8 FROM readings WHERE device_id = $1", t.devices[0].ID)
		if err != nil || have > 0 {
			return err
		}
		return e.service.Query(ctx, func(ctx context.Context, conn *pgx.Conn) error {
			return insertReadings(ctx, conn, t.devices, e.history.Add(-historyHours*time.Hour), e.history)
		})
	}
}

// metric returns the sum of a gauge of a process over all labels.
func metric(ctx context.Context, p *harness.Process, name string) (sum float64, err error) {
	metrics, err := proctest.Metrics(ctx, p.Ops)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", p.Name, err)
	}
	for _, m := range metrics[name].GetMetric() {
		sum += m.GetGauge().GetValue()
	}
	return sum, nil
}

// checkWaiting checks that the requests of a team that wait are bounded in number.
func checkWaiting(ctx context.Context, e *env) error {
	const most = 2 * 128 // for lists and for scans
	waiting, err := metric(ctx, e.api, "roomsensor_api_limit_waiting")
	if err == nil && waiting > most {
		e.Unexpected("scans: %g requests of a team wait for others", waiting)
	}
	return err
}

// checkTransactions checks that no transaction of the API has been open for most of the attack.
func checkTransactions(ctx context.Context, e *env) error {
	oldest, err := e.number(ctx, `
		SELECT coalesce(extract(epoch FROM max(now() - xact_start)), 0)::float8 FROM pg_stat_activity
		WHERE application_name = 'roomsensor api' AND datname = current_database()`)
	if err == nil && oldest > e.options.Attack.Seconds()*2/3 {
		e.Unexpected("exports: a transaction of a slow export is %.1f s old", oldest)
	}
	return err
}

// checkEnded checks that the API ended the requests whose body does not come, which it does after 5 seconds.
func checkEnded(_ context.Context, e *env, t Tally) error {
	if t["400"] < silentReaders {
		e.Unexpected("exports: %d of %d requests whose body does not come have ended: %v", t["400"], silentReaders, t)
	}
	return nil
}

// checkShares checks that the receiver refused a part of the flood (decision 53 a).
func checkShares(_ context.Context, e *env, t Tally) error {
	if t["429"] == 0 {
		e.Unexpected("the receiver does not limit the rate of a credential: %v", t)
	}
	return nil
}

// addTrigger makes the database refuse the readings of a device with an error that the service does not know.
func addTrigger(ctx context.Context, e *env) error {
	err := e.execute(ctx, `
		CREATE OR REPLACE FUNCTION refuse_reading() RETURNS trigger LANGUAGE plpgsql AS
		$$ BEGIN RAISE EXCEPTION 'refused' USING ERRCODE = 'XX000'; END $$`)
	if err != nil {
		return err
	}
	return e.execute(ctx, fmt.Sprintf(`
		CREATE TRIGGER refuse_reading BEFORE INSERT ON readings FOR EACH ROW
		WHEN (NEW.device_id = '%s') EXECUTE FUNCTION refuse_reading()`, e.attackers["poison"].devices[0].ID))
}

func dropTrigger(ctx context.Context, e *env) error {
	return e.execute(ctx, "DROP TRIGGER refuse_reading ON readings")
}

// lockReadings locks readings for 3 seconds, and checks that no process stops being ready: a slow database is not an
// unavailable one.
func lockReadings(ctx context.Context, e *env) error {
	const held, interval = 3 * time.Second, 100 * time.Millisecond
	watching, stop := context.WithTimeout(ctx, e.options.Attack)
	defer stop()
	locked := make(chan error, 1)
	go func() {
		locked <- e.execute(ctx, fmt.Sprintf(
			"BEGIN; LOCK TABLE readings IN ACCESS EXCLUSIVE MODE; SELECT pg_sleep(%g); COMMIT", held.Seconds()))
	}()
	client := &http.Client{Timeout: held}
	defer client.CloseIdleConnections()
	var down []string
	var largest float64
	retry.Every(watching, interval, func(ctx context.Context) {
		for _, p := range e.processes() {
			if !proctest.Answers(ctx, client, proctest.ReadyURL(p.Ops)) && ctx.Err() == nil {
				down = append(down, p.Name)
			}
		}
		if bytes, err := metric(ctx, e.receiver, "roomsensor_receiver_backlog_bytes"); err == nil {
			largest = max(largest, bytes)
		}
	})
	if len(down) > 0 {
		e.Unexpected("database: not ready while readings was locked: %s", strings.Join(down, ", "))
	}
	limit, err := metric(ctx, e.receiver, "roomsensor_receiver_backlog_max_bytes")
	if err != nil {
		return errors.Join(err, <-locked)
	}
	e.Logf("database: up to %.0f MiB of a team waited for a worker, of %.0f MiB", largest/(1<<20), limit/(1<<20))
	// It may exceed the limit by one request, and by what the messages add to it.
	if most := limit + backlogSize + 1<<20; largest > most || largest == 0 {
		e.Unexpected("database: %.0f MiB of a team waited for a worker", largest/(1<<20))
	}
	return <-locked
}
