package alerts

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"roomsensor/internal/roomsensor"
	"roomsensor/test/proctest"
)

// reporting is the name of a program that does not belong to the service.
const reporting = "reporting"

// openConnections opens connections until the server has few left, and leaves them open.
func openConnections(ctx context.Context, e *env) error {
	const most = 106 // of 117
	config, err := pgx.ParseConfig(e.server)
	if err != nil {
		return fmt.Errorf("reading the URL of the database: %w", err)
	}
	config.RuntimeParams["application_name"] = reporting
	for have := 0; have < most; {
		conn, err := pgx.ConnectConfig(ctx, config)
		if err != nil {
			return fmt.Errorf("opening a connection: %w", err)
		}
		e.OnClose(func(ctx context.Context) error { _ = conn.Close(ctx); return nil }) // The server has ended it.
		if err := conn.QueryRow(ctx, "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'").
			Scan(&have); err != nil {
			return fmt.Errorf("counting connections: %w", err)
		}
	}
	return nil
}

// endConnections ends the connections of that program, as the runbook says.
func endConnections(ctx context.Context, e *env) error {
	statement := "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = '" + reporting + "'"
	e.commands = append(e.commands, statement)
	return e.execute(ctx, statement)
}

// nameStandby restarts the API with a standby at an address where nothing listens. The operator on the machine of the
// worker has the setting too.
func nameStandby(ctx context.Context, e *env) error {
	address, err := proctest.FreeAddress()
	if err != nil {
		return err
	}
	u, err := url.Parse(e.server)
	if err != nil {
		return fmt.Errorf("reading the URL of the database: %w", err)
	}
	u.Host, u.User = address, url.UserPassword(rolePrefix+"_api", rolePrefix)
	for _, name := range []string{apiName, workerName} {
		p := e.processes[name]
		p.settings = append(p.settings, readDatabase+u.String())
	}
	return e.processes[apiName].restart(ctx)
}

const readDatabase = "READ_DATABASE_URL="

// removeStandby removes the setting, as the runbook says.
func removeStandby(ctx context.Context, e *env) error {
	for _, name := range []string{apiName, workerName} {
		p := e.processes[name]
		p.settings = slices.DeleteFunc(p.settings, func(s string) bool { return strings.HasPrefix(s, readDatabase) })
	}
	return e.processes[apiName].restart(ctx)
}

// revokeRight returns an injection that takes a right of the role of the workers.
func revokeRight(table string) func(context.Context, *env) error {
	return func(ctx context.Context, e *env) error {
		return e.execute(ctx, "REVOKE SELECT ON "+table+" FROM "+rolePrefix+"_worker")
	}
}

// restoreRights migrates with DATABASE_ROLES, as the runbook says.
func restoreRights(ctx context.Context, e *env) error {
	_, err := e.command(ctx, e.migrateUp()...)
	return err
}

// hallTeam is the name of a team whose devices were never used.
const hallTeam = "Hall"

func createDevices(ctx context.Context, e *env) error {
	return e.service.Query(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		t, err := insertTeam(ctx, conn, hallTeam, devices("dev:840000000000001", 2*teamDevices), 1, 1)
		e.others = append(e.others, t)
		return err
	})
}

// installDevices lets each of the devices upload once.
func installDevices(ctx context.Context, e *env) error {
	t := e.others[len(e.others)-1]
	now := time.Now().UTC().Add(-time.Hour)
	for i := range t.devices {
		e.load.post(ctx, t.credentials[0], bytes.NewReader(uploadOf(t.devices[i].HardwareID, now, 1)))
	}
	return nil
}

func createExpiringKeys(ctx context.Context, e *env) error {
	at := roomsensor.FormatTime(time.Now().UTC().Add(48 * time.Hour).Truncate(time.Second))
	for _, kind := range keyKinds {
		if _, err := e.command(ctx, kind, "create", "--team", mainTeam, "--expires-at", at); err != nil {
			return err
		}
	}
	return nil
}

// keyKinds are the commands for both kinds of keys.
var keyKinds = []string{"key", "ingest-key"}

// createSuccessors creates keys that do not expire, as the runbook says.
func createSuccessors(ctx context.Context, e *env) error {
	for _, kind := range keyKinds {
		if _, err := e.command(ctx, kind, "create", "--team", mainTeam); err != nil {
			return err
		}
	}
	return nil
}

// importYear imports readings of a year, one per week, so that there are more chunks than half of the locks.
func importYear(ctx context.Context, e *env) error {
	return e.service.Query(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		until := e.load.from.AddDate(0, 0, -2*historyDays)
		return insertReadings(ctx, conn, e.team.devices[:1], until.AddDate(-1, 0, 0), until, 7*24*time.Hour)
	})
}

// raiseLocks sets max_locks_per_transaction and restarts the server, as the runbook says.
func raiseLocks(ctx context.Context, e *env) error {
	e.database.Settings["max_locks_per_transaction"] = "256"
	return errors.Join(stopDatabase(ctx, e), startDatabase(ctx, e))
}
