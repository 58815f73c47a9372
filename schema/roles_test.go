package schema_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"roomsensor/schema"
	"roomsensor/test/dbtest"
)

const insufficientPrivilege = "42501"

// TestRolesRefuse checks what the role of each process must not do.
func TestRolesRefuse(t *testing.T) {
	t.Parallel()
	db := dbtest.New(t)
	owner := connect(t, db.URL)
	_, err := owner.Exec(t.Context(), `INSERT INTO readings (device_id, bucket_at) VALUES (gen_random_uuid(), '2026-01-01Z')`)
	require.NoError(t, err)
	var chunk string
	require.NoError(t, owner.QueryRow(t.Context(), `SELECT show_chunks('readings')::text`).Scan(&chunk))

	everyone := []string{
		"DROP TABLE readings", "TRUNCATE readings", "CREATE TABLE mine (id int)", "ALTER TABLE devices ADD mine int",
		"COPY (SELECT 1) TO PROGRAM 'true'", "COPY (SELECT 1) TO '/tmp/roomsensor'", "CREATE ROLE mine", "ALTER SYSTEM SET work_mem = '1GB'",
		"SELECT pg_read_file('PG_VERSION')", "DELETE FROM readings", "INSERT INTO teams (name) VALUES ('x')", "SELECT rolpassword FROM pg_authid",
		"UPDATE devices SET team_id = null", "DROP TABLE " + chunk, "SELECT drop_chunks('readings', older_than => now())",
		"INSERT INTO goose_db_version (version_id, is_applied) VALUES (1, true)", "UPDATE audit_log SET actor = 'x'", "DELETE FROM audit_log",
		"INSERT INTO audit_log (actor_kind, actor, action, object_kind, object_id) VALUES ('sql', 'x', 'change', 'team', 'x')",
		"TRUNCATE audit_log", "ALTER TABLE devices DISABLE TRIGGER audit",
	}
	processes := slices.Concat(everyone, []string{
		"INSERT INTO api_keys (key_id) VALUES ('x')", "UPDATE ingest_keys SET revoked_at = null", "SELECT FROM users", "SELECT FROM sessions",
	})
	for role, statements := range map[schema.Role][]string{
		schema.RoleAPI: slices.Concat(processes, []string{
			"INSERT INTO readings (device_id, bucket_at) VALUES (gen_random_uuid(), '2026-01-01Z')", "SELECT FROM ingest_keys",
			"SELECT FROM rejected_uploads", "SELECT FROM audit_log", "UPDATE device_state SET last_seen_at = now()", "SELECT order_chunk('" + chunk + "')",
		}),
		schema.RoleWorker: slices.Concat(processes, []string{
			"SELECT FROM api_keys", "SELECT FROM service_secrets", "SELECT FROM teams", "UPDATE devices SET metadata = '{}'",
			"SELECT FROM idempotency_keys", "SELECT FROM audit_log", "SELECT audit_expire('30 days', 1)",
		}),
		schema.RoleReceiver: slices.Concat(processes, []string{
			"SELECT FROM api_keys", "SELECT FROM service_secrets", "SELECT metadata FROM devices", "SELECT FROM readings",
			"SELECT FROM teams", "SELECT payload FROM rejected_uploads", "DELETE FROM rejected_uploads",
			"UPDATE device_state SET last_seen_at = now()", "UPDATE receiver_secrets SET secret = ''",
			"SELECT order_chunk('" + chunk + "')",
		}),
		schema.RoleDashboard: slices.Concat(everyone, []string{
			"SELECT FROM service_secrets", "SELECT FROM receiver_secrets", "SELECT FROM idempotency_keys", "DELETE FROM users",
			"UPDATE users SET disabled_at = null", "UPDATE users SET email = 'x'", "UPDATE memberships SET team_id = null",
			"DELETE FROM api_keys", "UPDATE api_keys SET scope = 'read_write'", "SELECT order_chunk('" + chunk + "')",
		}),
		schema.RoleNotify: slices.Concat(everyone, []string{
			"SELECT FROM api_keys", "SELECT FROM ingest_keys", "SELECT FROM service_secrets", "SELECT FROM receiver_secrets",
			"SELECT password_hash FROM users", "UPDATE users SET email = 'x'", "SELECT FROM sessions", "SELECT FROM sign_in_links",
			"SELECT FROM shared_links", "UPDATE memberships SET role = 'admin'", "SELECT payload FROM rejected_uploads",
			"UPDATE rejected_uploads SET replayed_at = now()", "SELECT FROM audit_log", "UPDATE teams SET alert_silent = null",
			"UPDATE mail_choices SET alerts = true", "INSERT INTO readings (device_id, bucket_at) VALUES (gen_random_uuid(), '2026-01-01Z')",
			"UPDATE device_state SET last_seen_at = now()", "SELECT order_chunk('" + chunk + "')",
		}),
	} {
		conn := connect(t, db.As(t, role))
		for _, sql := range statements {
			_, err := conn.Exec(t.Context(), sql)
			var refused *pgconn.PgError
			require.ErrorAs(t, err, &refused, "%s: %s", role, sql)
			require.Equal(t, insufficientPrivilege, refused.Code, "%s: %s: %v", role, sql, err)
		}
	}
}

// TestOrderChunkRefuses checks that a worker can rewrite chunks only, and run no statement of the owner: a text that names a
// temporary table may contain one.
func TestOrderChunkRefuses(t *testing.T) {
	t.Parallel()
	db := dbtest.New(t)
	worker := connect(t, db.As(t, schema.RoleWorker))
	name := "ordered_chunks;alter/**/table/**/if/**/exists/**/teams/**/rename/**/to/**/mine;--"
	_, err := worker.Exec(t.Context(), "CREATE TEMPORARY TABLE "+pgx.Identifier{name}.Sanitize()+" (id int PRIMARY KEY)")
	require.NoError(t, err)
	for _, text := range []string{"ordered_chunks", name, "public.teams"} {
		_, err := worker.Exec(t.Context(), "SELECT order_chunk($1)", text)
		require.ErrorContains(t, err, "is not a chunk of readings", text)
	}
	var exists bool
	require.NoError(t, worker.QueryRow(t.Context(), "SELECT to_regclass('public.teams') IS NOT NULL").Scan(&exists))
	require.True(t, exists)
}

// TestEnsureRoles checks that a new role can log in, that what it had before is revoked, that a second call changes no
// password, and that the owner of the tables can grant without the right to create roles.
func TestEnsureRoles(t *testing.T) {
	t.Parallel()
	db := dbtest.Empty(t)
	super := connect(t, db.URL)
	exec := func(sql string) {
		t.Helper()
		_, err := super.Exec(t.Context(), sql)
		require.NoError(t, err, sql)
	}
	var name string // Unique on the server, because roles belong to no database.
	require.NoError(t, super.QueryRow(t.Context(), "SELECT current_database()").Scan(&name))
	owner := schema.Roles{Prefix: name, Passwords: map[schema.Role]string{"owner": "o"}}
	ownerURL, err := owner.URL(db.URL, "owner")
	require.NoError(t, err)
	exec("CREATE ROLE " + name + "_owner LOGIN CREATEROLE PASSWORD 'o'")
	exec("ALTER DATABASE " + name + " OWNER TO " + name + "_owner")
	t.Cleanup(func() {
		_, err := super.Exec(context.Background(), "ALTER DATABASE "+name+" OWNER TO CURRENT_USER")
		require.NoError(t, err)
		for _, role := range append(slices.Clone(schema.AllRoles), "owner") {
			of := owner.Name(role)
			for _, sql := range []string{"DROP OWNED BY " + of + " CASCADE", "DROP ROLE " + of} {
				_, err := super.Exec(context.Background(), sql)
				require.NoError(t, err, sql)
			}
		}
	})
	require.NoError(t, schema.Up(t.Context(), ownerURL, schema.Layout{}), "the owner needs no superuser")

	roles := schema.Roles{Prefix: name, Passwords: map[schema.Role]string{
		schema.RoleAPI: "it's \\ a 'password'", schema.RoleWorker: "w", schema.RoleReceiver: "r", schema.RoleDashboard: "d",
	}}
	require.NoError(t, schema.EnsureRoles(t.Context(), ownerURL, roles))
	for role := range roles.Passwords {
		url, err := roles.URL(db.URL, role)
		require.NoError(t, err)
		var timeout string
		require.NoError(t, connect(t, url).QueryRow(t.Context(), "SHOW statement_timeout").Scan(&timeout))
		require.NotEqual(t, "0", timeout)
	}

	exec("GRANT DELETE ON readings TO " + name + "_api")
	exec("ALTER ROLE " + name + "_owner NOCREATEROLE")
	require.NoError(t, schema.EnsureRoles(t.Context(), ownerURL, schema.Roles{Prefix: name}))
	url, err := roles.URL(db.URL, schema.RoleAPI)
	require.NoError(t, err)
	conn := connect(t, url)
	_, err = conn.Exec(t.Context(), "SELECT FROM readings")
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), "DELETE FROM readings")
	require.ErrorContains(t, err, insufficientPrivilege)

	err = schema.EnsureRoles(t.Context(), ownerURL, roles)
	require.ErrorContains(t, err, "let an administrator of the server run: ALTER ROLE "+pgx.Identifier{name + "_api"}.Sanitize())
	require.NotContains(t, err.Error(), "it's", "an error does not contain a password")

	exec("ALTER ROLE " + name + "_owner CREATEROLE")
	for role := range roles.Passwords { // PostgreSQL 15 and earlier do not record who created a role.
		exec("REVOKE " + roles.Name(role) + " FROM " + name + "_owner")
	}
	if err = schema.EnsureRoles(t.Context(), ownerURL, roles); err != nil { // PostgreSQL 15 allows it.
		_, statement, found := strings.Cut(err.Error(), "an administrator can let the owner change the roles: ")
		require.True(t, found, err)
		exec(statement)
	}
	require.NoError(t, schema.EnsureRoles(t.Context(), ownerURL, roles))
}
