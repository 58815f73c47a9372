package alerts

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// execute executes a statement as the owner of the tables.
func (e *env) execute(ctx context.Context, sql string) error {
	return e.service.Query(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return fmt.Errorf("executing %.40q: %w", sql, err)
		}
		return nil
	})
}

// keyID returns the public id of a key, the part between its underscores.
func keyID(key string) string {
	_, rest, _ := strings.Cut(key, "_")
	id, _, _ := strings.Cut(rest, "_")
	return id
}

func revokeCredential(ctx context.Context, e *env) error {
	_, err := e.command(ctx, "ingest-key", "revoke", keyID(e.team.credentials[0]))
	return err
}

func replaceCredential(ctx context.Context, e *env) error {
	var created struct {
		Key string `json:"key"`
	}
	out, err := e.command(ctx, "ingest-key", "create", "--team", e.team.id.String())
	if err == nil {
		err = json.Unmarshal([]byte(out), &created)
	}
	if err != nil {
		return fmt.Errorf("replacing the credential: %w", err)
	}
	e.team.credentials[0] = created.Key
	e.load.credential.Store(created.Key)
	return nil
}

// suspendWorker lets a worker hang beside another one, and continueWorker lets it continue, as the runbook says.
func suspendWorker(_ context.Context, e *env) error {
	return e.processes[secondName].Signal(syscall.SIGSTOP)
}

func continueWorker(_ context.Context, e *env) error {
	return e.processes[secondName].Signal(syscall.SIGCONT)
}

const refuseReadings = `
	CREATE OR REPLACE FUNCTION refuse_readings() RETURNS trigger LANGUAGE plpgsql AS
	$$ BEGIN RAISE EXCEPTION 'refused' USING ERRCODE = 'XX000'; END $$;
	CREATE TRIGGER refuse_readings BEFORE INSERT OR UPDATE ON readings FOR EACH ROW `

func refuseDevice(ctx context.Context, e *env) error {
	return e.execute(ctx, refuseReadings+
		fmt.Sprintf("WHEN (NEW.device_id = '%s') EXECUTE FUNCTION refuse_readings()", e.team.devices[0].ID))
}

func refuseAll(ctx context.Context, e *env) error {
	return e.execute(ctx, refuseReadings+"EXECUTE FUNCTION refuse_readings()")
}

func acceptAll(ctx context.Context, e *env) error {
	return e.execute(ctx, "DROP TRIGGER refuse_readings ON readings")
}

var refusedSequence = regexp.MustCompile(`"stream_sequence":(\d+)`)

// skipAndAccept makes the upload a reject that the log named last, removes the cause, and stores the rejects, as the
// runbooks say.
func skipAndAccept(ctx context.Context, e *env) error {
	log, err := e.workerLog()
	if err != nil {
		return err
	}
	found := refusedSequence.FindAllStringSubmatch(log, -1)
	if len(found) == 0 {
		return errors.New("the log of the worker names no upload")
	}
	_, err = e.command(ctx, "stream", "skip", found[len(found)-1][1])
	if err = errors.Join(err, acceptAll(ctx, e)); err != nil {
		return err
	}
	_, err = e.command(ctx, "rejects", "replay", "--reason", "not_storable")
	return err
}

// sendFuture sends readings of a device whose clock is two years ahead.
func sendFuture(ctx context.Context, e *env) error {
	at := time.Now().AddDate(2, 0, 0)
	e.load.post(ctx, e.team.credentials[0], bytes.NewReader(uploadOf(e.team.devices[1].HardwareID, at, 1)))
	return sleep(ctx, uploadPause)
}

// sendUnknown sends uploads of units that no device has, more than the limit of rejects of a team, 1 MiB.
func sendUnknown(ctx context.Context, e *env) error {
	const uploads, size = 16, 256 << 10
	for i := range uploads {
		e.load.post(ctx, e.team.credentials[0], bytes.NewReader(padded(fmt.Sprintf("dev:99%04d", i), e.load.from, size)))
	}
	return nil
}
