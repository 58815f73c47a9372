package people_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/roomsensor/accounts"
	"roomsensor/internal/store"
	"roomsensor/test/dbtest"
)

// anna is a person who changes things.
func anna() roomsensor.Actor {
	return roomsensor.Actor{Kind: roomsensor.ActorPerson, Name: "anna@example.com", UserID: new(uuid.New())}
}

// audit lists the entries of the team, the oldest first.
func (f *fixture) audit(t *testing.T, q roomsensor.AuditQuery) []roomsensor.AuditEntry {
	t.Helper()
	q.Limit = 10_000
	entries, err := f.TeamAudit(t.Context(), f.TeamID, q)
	require.NoError(t, err)
	slices.Reverse(entries)
	return entries
}

// lineOf returns an entry as "action kind name: before -> after".
func lineOf(e *roomsensor.AuditEntry) string {
	return fmt.Sprintf("%s %s %s: %s -> %s", e.Action, e.ObjectKind, e.ObjectName, e.Before, e.After)
}

// TestAudit checks that each change of the store has one entry with the actor, the object, and what differs, and that the
// entries contain no hash of a secret.
func TestAudit(t *testing.T) {
	t.Parallel()
	f := setup(t)
	actor := anna()
	ctx := roomsensor.WithActor(t.Context(), actor)
	day := at("2026-01-01T00:00:00Z")
	var assignment uuid.UUID
	var reject uuid.UUID
	f.Exec(t, `INSERT INTO rejected_uploads (received_at, stream_sequence, reason, detail, team_id, payload)
		VALUES (now(), 1, 'unknown_unit', 'x', $1, 'x')`, f.TeamID)
	require.NoError(t, f.SQL.QueryRow(ctx, `SELECT id FROM rejected_uploads`).Scan(&reject))
	key := roomsensor.Key{TeamID: f.TeamID, SecretSHA256: [32]byte{0xAB, 0xCD, 0xEF}, Scope: roomsensor.ScopeRead, Label: new("CI")}
	withID := func(id string) roomsensor.Key { next := key; next.ID = id; return next }
	for _, c := range []struct {
		change func() error
		want   []string // parts of the lines
	}{
		{
			func() error { _, err := f.RenameTeam(ctx, f.TeamID, "Club"); return err },
			[]string{`change team Club: {"name": "Team"} -> {"name": "Club"}`},
		},
		{
			func() error {
				_, err := f.UpdateTeamSettings(ctx, f.TeamID, func(team *accounts.TeamSettings) error {
					team.Night.Start++
					return nil
				})
				return err
			},
			[]string{`change team Club: {"night_start": "22:00:00"} -> {"night_start": "22:01:00"}`},
		},
		{
			func() error { _, err := f.UpdateDevice(ctx, f.TeamID, f.DeviceID, rename("Room")); return err },
			[]string{`change device Room: {"display_name": null} -> {"display_name": "Room"}`},
		},
		{
			func() error { _, err := f.UpdateDevice(ctx, f.TeamID, f.DeviceID, tags("floor", "1")); return err },
			[]string{`change device Room: {"metadata": {}} -> {"metadata": {"floor": "1"}}`},
		},
		{
			func() error { _, err := f.UpdateDevice(ctx, f.TeamID, f.DeviceID, tags("wing", "B")); return err },
			[]string{`{"metadata": {}} -> {"metadata": {"wing": "B"}}`},
		},
		{
			func() error { _, err := f.ReplaceHardware(ctx, f.TeamID, f.DeviceID, "dev:7", day); return err },
			[]string{
				`change installation dev:1: {"removed_at": null} ->`, `create installation dev:7:  ->`,
				`change device Room: {"hardware_id": "dev:1"} -> {"hardware_id": "dev:7"}`,
			},
		},
		{
			func() error { _, err := f.RemoveHardware(ctx, f.TeamID, f.DeviceID, day.Add(time.Hour)); return err },
			[]string{`change installation dev:7: {"removed_at": null} ->`},
		},
		{func() error {
			done, err := f.ChangeAssignments(ctx, f.TeamID, roomsensor.StartAssignment(roomsensor.Assignment{
				DeviceID: f.DeviceID, Type: roomsensor.Place, Label: "Room 12", HomeOrTravel: roomsensor.Home, StartedAt: day,
			}), nil)
			assignment = done.After[0].ID
			return err
		}, []string{`create assignment Room 12:  ->`}},
		{func() error {
			done, err := f.ChangeAssignments(ctx, f.TeamID, roomsensor.TransferAssignment(assignment, roomsensor.Assignment{
				DeviceID: f.DeviceID, Type: roomsensor.Athlete, Label: "Anna", HomeOrTravel: roomsensor.Home, StartedAt: day.Add(time.Hour),
			}), nil)
			assignment = done.After[1].ID
			return err
		}, []string{`change assignment Room 12: {"ended_at": null} -> {"ended_at": "2026-01-01T01:00:00Z"}`, `create assignment Anna:`}},
		{
			func() error {
				_, err := f.ChangeAssignments(ctx, f.TeamID, roomsensor.EndAssignment(assignment, day.Add(2*time.Hour)), nil)
				return err
			},
			[]string{`change assignment Anna: {"ended_at": null} ->`},
		},
		{
			func() error { _, err := f.CreateAPIKey(ctx, withID("k1")); return err },
			[]string{`create api_key CI:  -> {"label": "CI", "scope": "read"}`},
		},
		{
			func() error { _, _, err := f.RotateAPIKey(ctx, f.TeamID, "k1", withID("k2"), time.Hour); return err },
			[]string{`change api_key CI: {"expires_at": null} ->`, `create api_key CI:`},
		},
		{
			func() error { _, err := f.RevokeAPIKey(ctx, f.TeamID, "k2"); return err },
			[]string{`change api_key CI: {"revoked_at": null} ->`},
		},
		{
			func() error { _, err := f.CreateIngestKey(ctx, withID("i1")); return err },
			[]string{`create ingest_key CI:  -> {"label": "CI"}`},
		},
		{
			func() error { _, _, err := f.RotateIngestKey(ctx, f.TeamID, "i1", withID("i2"), time.Hour); return err },
			[]string{`change ingest_key CI: {"expires_at": null} ->`, `create ingest_key CI:`},
		},
		{
			func() error { _, err := f.RevokeIngestKey(ctx, f.TeamID, "i2"); return err },
			[]string{`change ingest_key CI: {"revoked_at": null} ->`},
		},
		{
			func() error { return f.WriteReplay(ctx, reject, roomsensor.Batch{}) },
			[]string{`change reject unknown_unit: {"replayed_at": null} ->`},
		},
		{
			func() error { _, err := f.RevokeTeam(ctx, f.TeamID); return err },
			[]string{`change api_key CI: {"revoked_at": null} ->`, `change ingest_key CI: {"revoked_at": null} ->`},
		},
		{func() error { _, err := f.DeleteDevice(ctx, f.DeviceID); return err }, []string{
			`delete installation dev:1: {"device_id"`, `delete installation dev:7: {"device_id"`,
			`delete assignment Room 12: {"type": "place", "label": "Room 12"`, `delete assignment Anna:`,
			`delete device Room: {"team_id"`,
		}},
		{func() error { _, err := f.DeleteTeam(ctx, f.TeamID); return err }, []string{
			`delete api_key CI:`, `delete api_key CI:`, `delete ingest_key CI:`, `delete ingest_key CI:`,
			`delete team Club: {"name": "Club",`,
		}},
	} {
		before := len(f.audit(t, roomsensor.AuditQuery{}))
		require.NoError(t, c.change(), c.want)
		entries := f.audit(t, roomsensor.AuditQuery{})[before:]
		var lines []string
		for i := range entries {
			lines = append(lines, lineOf(&entries[i]))
			require.Equal(t, actor, entries[i].Actor, lineOf(&entries[i]))
			require.NotEmpty(t, entries[i].DatabaseUser)
		}
		require.Len(t, lines, len(c.want), "%q", lines)
		for i, want := range c.want {
			require.Contains(t, lines[i], want)
		}
	}
	var log string
	require.NoError(t, f.SQL.QueryRow(ctx, `SELECT string_agg(l::text, ' ') FROM audit_log l`).Scan(&log))
	require.NotContains(t, log, "abcdef")
	require.NotContains(t, log, "sha256")
}

// tags returns a patch that sets a tag.
func tags(key, value string) (patch roomsensor.DevicePatch) {
	patch.Metadata.Values = map[string]*string{key: &value}
	return patch
}

// TestAuditPeople checks that the log has the changes of people and their memberships, and neither passwords nor tokens.
func TestAuditPeople(t *testing.T) {
	t.Parallel()
	f := setup(t)
	var user uuid.UUID
	require.NoError(t, f.SQL.QueryRow(t.Context(),
		`INSERT INTO users (email, password_hash) VALUES ('anna@example.com', 'secret1') RETURNING id`).Scan(&user))
	f.Exec(t, `INSERT INTO memberships (user_id, team_id, role) VALUES ($1, $2, 'viewer')`, user, f.TeamID)
	f.Exec(t, `INSERT INTO sign_in_links (token_sha256, user_id, purpose, expires_at)
		VALUES (sha256('secret2'), $1, 'reset', now() + interval '1 hour'), (sha256('secret3'), $1, 'reset', '2026-01-01Z')`, user)
	f.Exec(t, `UPDATE users SET password_hash = 'secret4'`)
	f.Exec(t, `UPDATE memberships SET role = 'admin'`)
	f.Exec(t, `DELETE FROM sign_in_links WHERE expires_at < '2026-01-02Z'`)
	f.Exec(t, `DELETE FROM sign_in_links`)
	f.Exec(t, `DELETE FROM users`)
	entries, err := f.AuditEntries(t.Context(), roomsensor.AuditQuery{Object: user.String(), Limit: 100})
	require.NoError(t, err)
	var lines []string
	for i := range entries {
		line := lineOf(&entries[i])
		require.NotContains(t, line, "secret")
		lines = append(lines, strings.Join(strings.Fields(line)[:3], " "))
	}
	require.Equal(t, []string{
		"delete membership :", "delete user anna@example.com:", "delete sign_in_link anna@example.com:",
		"change membership anna@example.com:", "change user anna@example.com:",
		"create sign_in_link anna@example.com:", "create sign_in_link anna@example.com:",
		"create membership anna@example.com:", "create user anna@example.com:",
	}, lines)
	require.JSONEq(t, `{"password": "changed"}`, string(entries[4].After))
	require.Equal(t, f.TeamID, *entries[3].TeamID)
	require.Nil(t, entries[4].TeamID)
}

// TestAuditUnknownActor checks that plain SQL is recorded with the database user, also on a connection on which a program
// named an actor before.
func TestAuditUnknownActor(t *testing.T) {
	t.Parallel()
	f := setup(t)
	conn, err := f.SQL.Acquire(t.Context())
	require.NoError(t, err)
	defer conn.Release()
	_, err = conn.Exec(t.Context(), `BEGIN; SELECT set_config('roomsensor.actor', '{"kind": "operator", "name": "root"}', true);
		UPDATE devices SET display_name = 'a'; COMMIT; UPDATE devices SET display_name = 'b'`)
	require.NoError(t, err)
	var user string
	require.NoError(t, conn.QueryRow(t.Context(), `SELECT session_user`).Scan(&user))
	entries := f.audit(t, roomsensor.AuditQuery{Object: f.DeviceID.String()})
	last := entries[len(entries)-2:]
	require.Equal(t, roomsensor.Actor{Kind: roomsensor.ActorOperator, Name: "root"}, last[0].Actor)
	require.Equal(t, roomsensor.Actor{Kind: roomsensor.ActorSQL, Name: user}, last[1].Actor)
}

// TestAuditTransaction checks that a change that is rolled back, and a patch that changes nothing, have no entry.
func TestAuditTransaction(t *testing.T) {
	t.Parallel()
	f := setup(t)
	before := f.audit(t, roomsensor.AuditQuery{})
	f.Exec(t, `INSERT INTO api_keys (key_id, team_id, secret_sha256) VALUES ('k', $1, sha256(''))`, f.TeamID)
	key := roomsensor.IdempotencyKey{KeyID: "k", Method: "PATCH", Path: "/", Key: "1"}
	_, _, err := f.Idempotently(t.Context(), key, func(ctx context.Context, tx roomsensor.DeviceUpdater) ([]byte, error) {
		_, err := tx.UpdateDevice(ctx, f.TeamID, f.DeviceID, rename("Room"))
		require.NoError(t, err)
		return nil, roomsensor.ErrBlocked
	})
	require.ErrorIs(t, err, roomsensor.ErrBlocked)
	_, err = f.UpdateDevice(t.Context(), f.TeamID, f.DeviceID, roomsensor.DevicePatch{SetDisplayName: true})
	require.NoError(t, err)
	require.Len(t, f.audit(t, roomsensor.AuditQuery{}), len(before)+1, "only the key")
}

// TestAuditWorker checks that what workers update with every upload has no entry.
func TestAuditWorker(t *testing.T) {
	t.Parallel()
	f := setup(t)
	before := f.audit(t, roomsensor.AuditQuery{})
	now := time.Now().UTC().Truncate(time.Microsecond)
	_, err := f.WriteBatch(t.Context(), roomsensor.Batch{
		Rows: []roomsensor.DeviceMeasurement{co2(f.DeviceID, "2026-01-01T00:00:00Z", 400)},
		Seen: []roomsensor.DeviceHeartbeat{{
			DeviceID: f.DeviceID, LastSeenAt: now, SignalAt: now, FirmwareAt: now, Firmware: new("2"),
			Signal: &roomsensor.Signal{Bars: new(int16(3))},
		}},
	})
	require.NoError(t, err)
	d, err := f.Device(t.Context(), f.TeamID, f.DeviceID)
	require.NoError(t, err)
	require.Equal(t, "2", *d.FirmwareVersion)
	require.Equal(t, before, f.audit(t, roomsensor.AuditQuery{}))
}

// TestAuditPatchStatements checks that a patch is two statements, which lock the device and change it with its entry.
func TestAuditPatchStatements(t *testing.T) {
	t.Parallel()
	f := setup(t)
	var statements atomic.Int64
	url := dbtest.Tap(t, f.URL, func(m dbtest.Message) bool {
		if m.IsStatement() {
			statements.Add(1)
		}
		return true
	})
	tapped := open(t, url, store.API)
	ctx := roomsensor.WithActor(t.Context(), roomsensor.Actor{Kind: roomsensor.ActorAPIKey, Name: "k"})
	_, err := tapped.UpdateDevice(ctx, f.TeamID, f.DeviceID, rename("a")) // Also what a new connection sends.
	require.NoError(t, err)
	statements.Store(0)
	_, err = tapped.UpdateDevice(ctx, f.TeamID, f.DeviceID, rename("b"))
	require.NoError(t, err)
	require.EqualValues(t, 2, statements.Load())
	entries := f.audit(t, roomsensor.AuditQuery{Actor: "k"})
	require.Len(t, entries, 2)
	require.JSONEq(t, `{"display_name": "b"}`, string(entries[1].After))
}

// TestAuditSize checks that an entry of the longest tags is short.
func TestAuditSize(t *testing.T) {
	t.Parallel()
	f := setup(t)
	var patch roomsensor.DevicePatch
	patch.Metadata.Values = map[string]*string{}
	for i := range roomsensor.MaxMetadataKeys {
		patch.Metadata.Values[fmt.Sprintf("%064d", i)] = new(strings.Repeat("𝄞", 500))
	}
	_, err := f.UpdateDevice(t.Context(), f.TeamID, f.DeviceID, patch)
	require.NoError(t, err)
	entries := f.audit(t, roomsensor.AuditQuery{})
	after := entries[len(entries)-1].After
	require.Less(t, len(after), 3000)
	var tags struct {
		Metadata map[string]string `json:"metadata"`
	}
	require.NoError(t, json.Unmarshal(after, &tags))
	require.Len(t, tags.Metadata, 11)
	require.Equal(t, "40 more", tags.Metadata["…"])
	require.Equal(t, strings.Repeat("𝄞", 20)+"…", tags.Metadata[fmt.Sprintf("%064d", 7)])

	f.Exec(t, `UPDATE devices SET display_name = $1`, strings.Repeat("x", 1000))
	entries = f.audit(t, roomsensor.AuditQuery{})
	require.JSONEq(t, `{"display_name": "`+strings.Repeat("x", 200)+`…"}`, string(entries[len(entries)-1].After))
}

// TestAuditPages checks the filters, and that pages have each entry once, also of those with the same time.
func TestAuditPages(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.Exec(t, `DELETE FROM audit_log`)
	f.Exec(t, `INSERT INTO audit_log (at, actor_kind, actor, team_id, action, object_kind, object_id, object_name)
		SELECT timestamptz '2026-01-01Z' + n / 5 * interval '1 hour', 'person', 'Anna@example.com', $1, 'change', 'team', 'x' || n, 'Room'
		FROM generate_series(0, 24) n`, f.TeamID)
	f.Exec(t, `INSERT INTO audit_log (at, actor_kind, actor, team_id, action, object_kind, object_id)
		VALUES ('2026-01-01Z', 'person', 'bob@example.com', $1, 'change', 'team', 'other')`, uuid.New())
	q := roomsensor.AuditQuery{Limit: 3}
	seen := map[string]bool{}
	for {
		page, err := f.TeamAudit(t.Context(), f.TeamID, q)
		require.NoError(t, err)
		for i := range page {
			require.False(t, seen[page[i].ObjectID])
			seen[page[i].ObjectID] = true
			q.After = &roomsensor.AuditPosition{At: page[i].At, ID: page[i].ID}
		}
		if len(page) < q.Limit {
			break
		}
	}
	require.Len(t, seen, 25)

	from, to := at("2026-01-01T01:00:00Z"), at("2026-01-01T03:00:00Z")
	require.Len(t, f.audit(t, roomsensor.AuditQuery{Since: &from, Until: &to}), 10)
	require.Len(t, f.audit(t, roomsensor.AuditQuery{Actor: "anna"}), 25)
	require.Empty(t, f.audit(t, roomsensor.AuditQuery{Actor: "bob"}))
	require.Len(t, f.audit(t, roomsensor.AuditQuery{Object: "X7"}), 1)
	require.Len(t, f.audit(t, roomsensor.AuditQuery{Object: "roo"}), 25)

	all, err := f.AuditEntries(t.Context(), roomsensor.AuditQuery{Actor: "BOB@example.com", Limit: 10})
	require.NoError(t, err)
	require.Len(t, all, 1)
	all, err = f.AuditEntries(t.Context(), roomsensor.AuditQuery{TeamID: &f.TeamID, Since: &to, Object: "room", Limit: 100})
	require.NoError(t, err)
	require.Len(t, all, 10)
}

// TestPurgeAudit checks that old entries are deleted, none younger than 30 days, and of a team's surplus only those of API
// keys and of people who replayed rejects, the oldest first.
func TestPurgeAudit(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.Exec(t, `DELETE FROM audit_log`)
	insertOf := func(object, age string, kind roomsensor.ActorKind, id string, n int) {
		f.Exec(t, `INSERT INTO audit_log (at, actor_kind, actor, team_id, action, object_kind, object_id)
			SELECT now() - $1::interval - n * interval '1 millisecond', $2, 'x', $3, 'change', $4, $5
			FROM generate_series(1, $6) n`, age, kind, f.TeamID, object, id, n)
	}
	insert := func(age string, kind roomsensor.ActorKind, id string, n int) { insertOf("device", age, kind, id, n) }
	insert("401 days", roomsensor.ActorPerson, "expired", 2500)
	insert("399 days", roomsensor.ActorPerson, "old", 1)
	insert("29 days", roomsensor.ActorAPIKey, "surplus", 1500)
	insertOf("reject", "28 days", roomsensor.ActorPerson, "surplus", 1000)
	insertOf("reject", "2 days", roomsensor.ActorOperator, "operator", 1)
	insertOf("reject", "2 days", roomsensor.ActorPerson, "kept", 1)
	insert("1 day", roomsensor.ActorAPIKey, "kept", 249_999)
	n, err := f.PurgeAudit(t.Context(), 400*24*time.Hour)
	require.NoError(t, err)
	require.EqualValues(t, 5000, n)
	ids := func() (ids []string) {
		rows, err := f.SQL.Query(t.Context(), `SELECT object_id FROM audit_log GROUP BY 1 ORDER BY 1`)
		require.NoError(t, err)
		for rows.Next() {
			var id string
			require.NoError(t, rows.Scan(&id))
			ids = append(ids, id)
		}
		return ids
	}
	require.Equal(t, []string{"kept", "old", "operator"}, ids())
	_, err = f.PurgeAudit(t.Context(), 0)
	require.NoError(t, err)
	require.Equal(t, []string{"kept", "operator"}, ids(), "entries of the last 30 days stay")
}

// TestMaxChanges checks that people cannot fill the log: neither one person nor all people of a team. Changes of others and
// replays of rejects do not count.
func TestMaxChanges(t *testing.T) {
	t.Parallel()
	f := setup(t)
	first, second := f.person(t, "a@example.com", roomsensor.Admin, f.TeamID), f.person(t, "b@example.com", roomsensor.Admin, f.TeamID)
	insert := func(kind, object string, user uuid.UUID, team *uuid.UUID, n int) {
		f.Exec(t, `INSERT INTO audit_log (actor_kind, actor, user_id, team_id, action, object_kind, object_id)
			SELECT $1, 'x', $2, $3, 'change', $4, 'x' FROM generate_series(1, $5::integer)`, kind, user, team, object, n)
	}
	change := func(user uuid.UUID) error {
		_, err := f.UpdateDevice(f.as(t, user), f.TeamID, f.DeviceID, rename("x"+uuid.NewString()))
		return err
	}
	insert("api_key", "device", uuid.New(), &f.TeamID, roomsensor.MaxChanges)
	insert("person", "reject", first, &f.TeamID, roomsensor.MaxChanges)
	insert("person", "user", first, nil, roomsensor.MaxChanges-1)
	require.NoError(t, change(first))
	require.ErrorContains(t, change(first), "the most that people may make")
	require.ErrorContains(t, f.RenameUser(f.as(t, first), first, "x"), "the most that people may make")
	require.NoError(t, change(second))
	insert("person", "device", uuid.New(), &f.TeamID, roomsensor.MaxChanges)
	require.ErrorContains(t, change(second), "the most that people may make")
	f.Exec(t, "UPDATE audit_log SET at = at - interval '24 hours'")
	require.NoError(t, change(first))
}
