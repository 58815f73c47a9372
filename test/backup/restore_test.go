package backup_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"roomsensor/client/localcopy"
	"roomsensor/internal/roomsensor"
	"roomsensor/test/harness"
)

// TestPointInTime restores a base backup and the write-ahead log to a moment. What was stored later comes back from the
// stream; a key that was revoked later, and the copy of a client that saw more, must not be trusted.
func TestPointInTime(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.step(e.account, "archive the log", archiveLog)
	e.newFleet()
	imported := e.newDevice()
	e.startAPIAndWorker()
	e.startReceiver()
	d := e.begin(1)
	e.step(e.account, "take a base backup", takeBaseBackup)
	e.awaitMore()

	copied := &oldCopy{e, filepath.Join(e.Dir, "copy.db"), e.fleet.Teams[0].Key}
	older := &oldCopy{e, filepath.Join(e.Dir, "older.db"), e.fleet.Teams[0].Key}
	stderr, ok := older.sync()
	require.True(t, ok, stderr)
	tooEarly := e.clock()
	e.awaitMore()
	leaked := e.newKey()
	moment := e.clock()
	e.Logf("the moment is %s", roomsensor.FormatTime(moment))
	e.variables["RESTORE_TO"] = roomsensor.FormatTime(moment)
	require.NoError(t, e.service.Command(t.Context(), nil, "key", "revoke", leaked))
	var one int
	e.value(&one, "INSERT INTO readings (device_id, bucket_at, co2_ppm) VALUES ($1, '2026-01-01Z', 1) RETURNING 1", imported)
	e.awaitMore()
	require.Eventually(t, func() bool {
		stderr, ok := copied.sync()
		require.True(t, ok, stderr)
		return copied.rows(imported) == 1
	}, stepTimeout, pollInterval)
	e.archiveSegment()
	e.awaitMore()
	e.step(e.account, "save what people changed", saveChanges)
	before := e.readings()

	e.Logf("lose the data directory")
	e.shell(e.account, `pg_ctl stop --pgdata="$PGDATA" --mode=immediate --silent; rm -r "$PGDATA/base"`)
	e.stop("api", "worker")
	e.restoreTo(tooEarly)
	early := e.readings()
	e.value(&one, "INSERT INTO streams VALUES ('of the first attempt', now()) RETURNING 1")
	e.archiveSegment()
	e.restoreTo(moment) // The first moment was too early. What was archived since then must not count.
	require.Greater(t, e.readings(), early)
	d.afterRestore(before, func() {
		require.False(t, e.revoked(leaked), "the key is valid again")
		for _, key := range e.savedRevocations() {
			require.NoError(t, e.service.Command(t.Context(), nil, "key", "revoke", key))
		}
		require.True(t, e.revoked(leaked))
	})
	d.finish()

	e.Logf("the copy of a client that saw the lost time")
	stderr, ok = copied.sync()
	require.False(t, ok)
	require.Contains(t, stderr, localcopy.ErrForgotten.Error())
	require.Equal(t, 1, copied.rows(imported), "the service lacks this reading")
	copied.path = filepath.Join(e.Dir, "new.db")
	stderr, ok = copied.sync()
	require.True(t, ok, stderr)
	require.Zero(t, copied.rows(imported))

	e.Logf("the copy of a client that did not")
	stderr, ok = older.sync()
	require.True(t, ok, stderr)
	require.NotContains(t, stderr, "no longer valid")
	require.Equal(t, copied.all(), older.all(), "the copy has all readings")
}

func (e *env) clock() (now time.Time) {
	e.t.Helper()
	e.value(&now, "SELECT clock_timestamp()")
	return now
}

// restoreTo restores the database to a moment, up to the last change before it.
func (e *env) restoreTo(moment time.Time) {
	e.t.Helper()
	e.variables["RESTORE_TO"] = roomsensor.FormatTime(moment)
	e.step(e.account, "restore", restoreBaseBackup)
	var restored time.Time
	e.value(&restored, "SELECT pg_last_xact_replay_timestamp()")
	require.WithinRange(e.t, restored, moment.Add(-lastChange), moment)
}

// newDevice creates a device of the first team whose readings are not in the ledger.
func (e *env) newDevice() uuid.UUID {
	e.t.Helper()
	var device struct {
		ID uuid.UUID `json:"device_id"`
	}
	require.NoError(e.t, e.service.Command(e.t.Context(), &device, "device", "create",
		"--team", e.fleet.Teams[0].ID.String(), "--hardware-id", "dev:1", "--name", "Imported"))
	e.fleet.Excluded = append(e.fleet.Excluded, device.ID)
	return device.ID
}

func (e *env) newKey() (id string) {
	e.t.Helper()
	var key struct {
		ID string `json:"key_id"`
	}
	require.NoError(e.t, e.service.Command(e.t.Context(), &key, "key", "create", "--team", e.fleet.Teams[0].ID.String()))
	return key.ID
}

func (e *env) revoked(key string) (revoked bool) {
	e.t.Helper()
	e.value(&revoked, "SELECT revoked_at IS NOT NULL FROM api_keys WHERE key_id = $1", key)
	return revoked
}

// savedRevocations returns the keys that were revoked after the moment, from what the operator saved.
func (e *env) savedRevocations() (keys []string) {
	e.t.Helper()
	text, err := os.ReadFile(filepath.Join(e.variables["BACKUP"], "changes.json"))
	require.NoError(e.t, err)
	var saved struct {
		Data []struct {
			ObjectKind string `json:"object_kind"`
			ObjectID   string `json:"object_id"`
			After      struct {
				RevokedAt *time.Time `json:"revoked_at"`
			} `json:"after"`
		} `json:"data"`
	}
	require.NoError(e.t, json.Unmarshal(text, &saved))
	for _, entry := range saved.Data {
		if entry.ObjectKind == "api_key" && entry.After.RevokedAt != nil {
			keys = append(keys, entry.ObjectID)
		}
	}
	return keys
}

// archiveSegment waits until everything that was committed before is in the archive.
func (e *env) archiveSegment() {
	e.t.Helper()
	var segment string
	e.value(&segment, "SELECT pg_walfile_name(pg_switch_wal())")
	require.Eventually(e.t, func() bool {
		var archived bool
		e.value(&archived, "SELECT coalesce(last_archived_wal >= $1, false) FROM pg_stat_archiver", segment)
		return archived
	}, stepTimeout, pollInterval)
}

// TestDump restores a dump after the database and its roles were dropped, and moves the stream to another disk meanwhile.
func TestDump(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.newFleet()
	e.startAPIAndWorker()
	e.startReceiver()
	d := e.begin(2)
	e.step(e.account, "dump", dump)
	e.variables["RESTORE_TO"] = roomsensor.FormatTime(e.clock())
	e.awaitMore()
	before := e.readings()

	e.Logf("lose the database and its roles")
	e.stop("api", "worker")
	e.shell(e.account, `psql "$ADMIN_URL" --command="DROP DATABASE roomsensor WITH (FORCE)" \
		--command="DROP ROLE roomsensor_api, roomsensor_worker, roomsensor_receiver, roomsensor_dashboard, $OWNER"`)
	_, err := e.nats.Stop(stepTimeout)
	require.NoError(t, err)
	require.NoError(t, os.Chmod(e.variables["BACKUP"], 0o755))
	e.step(nil, "copy the stream", copyStreams)
	e.step(nil, "restore the stream", restoreStreams)
	require.NoError(t, e.nats.Restart(t.Context()))
	e.restoreDump()
	var may bool
	e.value(&may, "SELECT has_schema_privilege($1, 'public', 'CREATE')", e.variables["OWNER"])
	require.True(t, may, "the next migrate up creates tables")
	e.migrate()
	d.afterRestore(before, func() {})
	d.finish()
}

// restoreDump restores the dump. A receiver that could read the credentials before all of them are there would refuse
// uploads that it must accept.
func (e *env) restoreDump() {
	e.t.Helper()
	create, load, found := strings.Cut(e.page[restoreDump], "pg_restore ")
	require.True(e.t, found)
	e.run(e.account, "create the database", create)
	owner := harness.Service{DatabaseURL: func() string { return e.as(e.variables["OWNER"]) }}
	err := owner.Query(e.t.Context(), func(context.Context, *pgx.Conn) error { return nil })
	require.ErrorContains(e.t, err, "too many connections for database")
	e.run(e.account, "restore the dump", "pg_restore "+load)
}
