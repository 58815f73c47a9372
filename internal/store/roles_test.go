package store_test

import (
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/store"
	"roomsensor/schema"
	"roomsensor/test/dbtest"
)

// calledBy contains where the methods of the store are that the processes of a role call: the files of their
// interfaces, and methods that internal/service and internal/process call themselves.
var calledBy = map[schema.Role]struct{ files, methods []string }{
	schema.RoleAPI: {[]string{"../api/backend.go", "../api/feed/feed.go", "../roomsensor/device.go", "../export/export.go"}, []string{"CursorSecret", "Database", "ExpiringAPIKeys", "PurgeIdempotency", "PurgeRateWindows", "RecordAPIKeyUses", "PurgeAudit"}},
	schema.RoleWorker: {
		[]string{"../worker/worker.go", "../worker/write.go", "../worker/resolve_message.go", "../httpedge/key_list.go", "../receiver/database.go", "../source/preview.go", "../source/search.go"},
		[]string{"Database", "ChunksToOrder", "OrderChunk", "StreamCreated", "RecordStream", "Statistics", "RecordIngestKeyUses", "ExpireReadings"},
	},
	schema.RoleReceiver:  {[]string{"../httpedge/key_list.go", "../mqtt/mqtt.go", "../receiver/database.go", "../source/preview.go", "../source/search.go"}, []string{"Database", "RecordIngestKeyUses"}},
	schema.RoleDashboard: {nil, []string{"Database", "FindCtx", "CommitCtx", "DeleteCtx", "PurgeSignIns", "OpenExport", "TaggedDevices", "Assignment"}},
	schema.RoleNotify:    {[]string{"../notify/notify.go", "../roomsensor/alerting/alert.go"}, []string{"Database", "PurgeAlerts"}},
}

// onlyMentioned are queries of methods that have the name of a field which the processes of a role use.
var onlyMentioned = map[schema.Role][]string{
	schema.RoleAPI:    {"AlertList"},
	schema.RoleWorker: {"TeamSettingsGet", "SourceCount", "AssignmentListHeld", "AssignmentGet"}, schema.RoleReceiver: {"TeamSettingsGet"}, schema.RoleNotify: {"DeviceGet"},
}

// TestSessionSettings checks that a process makes the settings of its role in its sessions, also if it logs in as another
// one. Behind PgBouncer in transaction mode, sessions have only those of the role.
func TestSessionSettings(t *testing.T) {
	t.Parallel()
	db := dbtest.New(t)
	conn, err := pgx.Connect(t.Context(), db.URL)
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET jit = on', current_database()); END $$`)
	require.NoError(t, err)
	require.NoError(t, conn.Close(t.Context()))
	for role, process := range map[schema.Role]store.Role{
		schema.RoleAPI: store.API, schema.RoleWorker: store.Ingest, schema.RoleReceiver: store.Ingest,
		schema.RoleDashboard: store.Dashboard, schema.RoleNotify: store.Notify,
	} {
		want := sessionSettings(t, db.URL, process)
		require.Equal(t, want, sessionSettings(t, db.As(t, role), process.Pooled()), role)
		require.Contains(t, want, "jit=off")
	}
}

// sessionSettings returns the settings that a process makes, as its sessions have them.
func sessionSettings(t *testing.T, databaseURL string, process store.Role) (list []string) {
	t.Helper()
	s, err := store.Open(t.Context(), databaseURL, process)
	require.NoError(t, err)
	defer s.Close()
	require.NoError(t, s.Pool.QueryRow(t.Context(), `SELECT array_agg(name || '=' || setting ORDER BY name) FROM pg_settings
		WHERE name IN ('statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout', 'synchronous_commit', 'jit')`).
		Scan(&list))
	require.Len(t, list, 5)
	return list
}

// TestRolesAllowQueries checks that each query that a process runs is allowed to its role. EXPLAIN checks the rights
// without running it. If a query fails here, add its rights to schema/roles/grants.sql.
func TestRolesAllowQueries(t *testing.T) {
	t.Parallel()
	db := dbtest.New(t)
	queries := readQueries(t)
	for role, called := range calledBy {
		if role == schema.RoleDashboard {
			called.files = slices.Concat(filesIn(t, "../dashboard/*"), filesIn(t, "../export")) // Each page declares its interface.
		}
		conn, err := pgx.Connect(t.Context(), db.As(t, role))
		require.NoError(t, err)
		defer func() { require.NoError(t, conn.Close(t.Context())) }()
		_, err = conn.Exec(t.Context(), queries["ReadingIncomingCreate"]) // ReadingUpsertIncoming reads it.
		require.NoError(t, err)
		allowed, used := 0, namesUsedBy(t, append(interfaceMethods(t, called.files...), called.methods...))
		for _, name := range onlyMentioned[role] {
			delete(used, name)
		}
		if role != schema.RoleDashboard {
			delete(used, "MembershipRole") // Only people have a right that a transaction checks.
			delete(used, "AuditCountRecent")
		}
		for name, sql := range queries {
			if !regexp.MustCompile(`^(SELECT|INSERT|UPDATE|DELETE|WITH) `).MatchString(sql) {
				continue
			}
			err := explain(t, conn, sql)
			if used[name] && withoutTeam[name] != operator {
				require.NoError(t, err, "%s as %s", name, role)
				allowed++
			} else if role == schema.RoleReceiver && readsTable.MatchString(sql) && !ofReceiver.MatchString(sql) {
				require.Error(t, err, "%s as %s", name, role)
			}
		}
		require.NotZero(t, allowed, role)
	}
}

// readsTable matches queries that read a table. The receiver may read none but its own, and some columns of others, which
// TestRolesRefuse checks. Every role may read the catalog.
var (
	readsTable = regexp.MustCompile(` (FROM|INTO|UPDATE) [a-z_]+ `)
	ofReceiver = regexp.MustCompile(`\b(ingest_keys|ingest_key_uses|sources|unit_aliases|receiver_secrets|device_hardware|devices|rejected_uploads|pg_\w+)\b`)
)

// explain returns the error of a role that may not run a query, or may not read or write a table of it.
func explain(t *testing.T, conn *pgx.Conn, sql string) error {
	t.Helper()
	numbers, nulls := map[string]string{}, ""
	text := parameter.ReplaceAllStringFunc(sql, func(match string) string {
		name := strings.Join(parameter.FindStringSubmatch(match)[1:], "")
		if numbers[name] == "" {
			numbers[name] = "$" + strconv.Itoa(len(numbers)+1)
			nulls = strings.TrimPrefix(nulls+", NULL", ", ")
		}
		return numbers[name]
	})
	if nulls != "" {
		nulls = "(" + nulls + ")"
	}
	text = embedded.ReplaceAllString(text, "$1.*")
	_, err := conn.Exec(t.Context(), "PREPARE query AS "+text)
	require.NoError(t, err, sql)
	_, err = conn.Exec(t.Context(), "EXPLAIN EXECUTE query"+nulls)
	_, deallocated := conn.Exec(t.Context(), "DEALLOCATE query")
	require.NoError(t, deallocated)
	if pgErr, ok := errors.AsType[*pgconn.PgError](err); ok {
		require.Equal(t, "42501", pgErr.Code, "%s: %v", sql, err)
	}
	return err
}

// parameter matches a parameter of a query for sqlc.
var parameter = regexp.MustCompile(`sqlc\.narg\((\w+)\)|@(\w+)`)

// embedded matches all columns of a table, for sqlc.
var embedded = regexp.MustCompile(`sqlc\.embed\((\w+)\)`)
