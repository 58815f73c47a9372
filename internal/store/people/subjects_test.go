package people_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/roomsensor/accounts"
	"roomsensor/internal/store/people"
)

// The subject of the tests. The label has a character beyond ASCII, which JSON can escape.
const (
	subjectLabel = "Zoë Kowalska"
	subjectRef   = "crm-4711"
)

// occurrences returns the rows of the whole database that contain a text in any letter case, also in bytes. It finds the
// tables in the catalog, so that a table that is added later is searched too.
func (f *fixture) occurrences(t *testing.T, texts ...string) (found []string) {
	t.Helper()
	for _, text := range slices.Clone(texts) {
		texts = append(texts, strings.ToUpper(text)) // Beyond ASCII, the database may not know the cases.
	}
	rows, err := f.SQL.Query(t.Context(), `SELECT quote_ident(table_name) FROM information_schema.tables
		WHERE table_schema = 'public' AND table_type = 'BASE TABLE' ORDER BY 1`)
	require.NoError(t, err)
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	require.Greater(t, len(tables), 20)
	for _, table := range tables {
		for _, text := range texts {
			rows, err := f.SQL.Query(t.Context(), fmt.Sprintf(`SELECT x::text FROM %s x WHERE strpos(lower(x::text), lower($1)) > 0
				OR strpos(x::text, encode(convert_to($1, 'UTF8'), 'hex')) > 0`, table), text)
			require.NoError(t, err)
			hits, err := pgx.CollectRows(rows, pgx.RowTo[string])
			require.NoError(t, err)
			for _, hit := range hits {
				found = append(found, table+": "+hit)
			}
		}
	}
	return found
}

// assignAthlete stores an assignment of an athlete that lasts an hour.
func (f *fixture) assignAthlete(t *testing.T, team, device uuid.UUID, label, ref, from string) uuid.UUID {
	t.Helper()
	ctx := roomsensor.WithActor(t.Context(), anna())
	a := roomsensor.Assignment{
		DeviceID: device, Type: roomsensor.Athlete, Label: label, HomeOrTravel: roomsensor.Home, StartedAt: at(from),
	}
	if ref != "" {
		a.ExternalRef = &ref
	}
	done, err := f.ChangeAssignments(ctx, team, roomsensor.StartAssignment(a), nil)
	require.NoError(t, err)
	started := done.After[0]
	_, err = f.ChangeAssignments(ctx, team, roomsensor.EndAssignment(started.ID, at(from).Add(time.Hour)), nil)
	require.NoError(t, err)
	return started.ID
}

// plantSubject stores the subject in every place that can have its name, and returns an assignment of it.
func (f *fixture) plantSubject(t *testing.T) uuid.UUID {
	t.Helper()
	id := f.assignAthlete(t, f.TeamID, f.DeviceID, subjectLabel, subjectRef, "2026-01-01T00:00:00Z")
	deleted := f.NewDevice(t, "dev:2")
	f.assignAthlete(t, f.TeamID, deleted, subjectLabel, subjectRef, "2026-01-02T00:00:00Z")
	_, err := f.DeleteDevice(t.Context(), deleted)
	require.NoError(t, err)
	_, err = f.UpdateDevice(t.Context(), f.TeamID, f.DeviceID, rename("Room of "+strings.ToUpper(subjectLabel)))
	require.NoError(t, err)
	_, err = f.UpdateDevice(t.Context(), f.TeamID, f.DeviceID, tags("athlete", subjectRef))
	require.NoError(t, err)
	key := f.NewAPIKey(t)
	for name, response := range map[string]string{
		"shows the assignment": fmt.Sprintf(`{"display_name":"x","n":1.50,"active_assignment":{"assignment_id":"%s","label":"%s","external_ref":"%s"}}`, id, subjectLabel, subjectRef),
		"shows the tag":        fmt.Sprintf(`{"metadata":{"athlete":"%s"},"active_assignment":null}`, strings.ToUpper(subjectRef)),
	} {
		_, _, err = f.Idempotently(t.Context(), roomsensor.IdempotencyKey{KeyID: key, Method: "PATCH", Path: "/", Key: name},
			func(context.Context, roomsensor.DeviceUpdater) ([]byte, error) { return []byte(response), nil })
		require.NoError(t, err)
	}
	f.Exec(t, `INSERT INTO rejected_uploads (received_at, stream_sequence, reason, detail, team_id, payload)
		SELECT now(), n, 'unknown_unit', 'x', $1, convert_to(payload, 'UTF8') FROM unnest($2::text[]) WITH ORDINALITY p (payload, n)`,
		f.TeamID, []string{`{"hardware_id":"dev:9","who":"` + subjectLabel + `"}`, `{"hardware_id":"dev:9","who":"zo\u00EB \u006bowalska"}`})
	f.Exec(t, `WITH s AS (INSERT INTO sources (team_id, name, format, mapping) VALUES ($1, 'x', 'tts', '{}') RETURNING id)
		INSERT INTO source_state (source_id, last_received_at, message, precision) SELECT id, now(), convert_to($2, 'UTF8'), '' FROM s`,
		f.TeamID, `{"who":"`+subjectLabel+`"}`)
	f.Exec(t, `INSERT INTO sessions (token_hash, data, expires_at) VALUES ('x', convert_to($1, 'UTF8'), now())`,
		`{"deadline":"2026-01-01T00:00:00Z","values":{"user":"u","message":"Ended `+subjectLabel+` on Hall."}}`)
	f.Exec(t, `INSERT INTO alert_rounds (team_id, report, reported) VALUES ($1, jsonb_build_object('good', $2::text), jsonb_build_object($2::text, 'bad'))`,
		f.TeamID, subjectLabel)
	f.Exec(t, `INSERT INTO readings (device_id, bucket_at, co2_ppm) VALUES ($1, '2026-01-01 00:30Z', 400)`, f.DeviceID)
	require.NoError(t, f.AddNote(t.Context(), f.TeamID, &roomsensor.Note{AssignmentID: &id, At: at("2026-01-01T00:00:00Z"), Text: subjectLabel + " is ill"}))
	return id
}

func changes(e *roomsensor.Erasure) []int64 {
	return []int64{e.Assignments, e.Notes, e.AuditEntries, e.Responses, e.Notices, e.Messages, e.Rejects}
}

// placesOf returns the tables and fields of mentions, each once.
func placesOf(mentions []roomsensor.Mention) map[string]bool {
	places := map[string]bool{}
	for _, m := range mentions {
		places[m.Table+"."+m.Field] = true
	}
	return places
}

// TestTextsInDatabase checks that PostgreSQL finds a text in each of its spellings, in text and in bytes.
func TestTextsInDatabase(t *testing.T) {
	t.Parallel()
	f := setup(t)
	long := strings.Repeat("Ωß𠮷ẞ", 50)
	for text, spellings := range map[string][]string{
		`𠮷 "Zoë"/K.`: {
			`𠮷 "ZOË"/k.`, `𠮷 \"zoë\"\/K.`, `\uD842\udfB7\u0020\u0022\u007Ao\u00CB\u0022\u002fK\u002e`,
			`\\ud842\\udfb7 \\\"Zo\\u00eb\\\"\\\/\u212a.`, "𠮷 \"zoë\"/\u212a.",
		},
		long: {long, strings.ToLower(long)},
	} {
		pattern := roomsensor.NewTexts("Nobody", text).Pattern()
		for _, spelling := range append(spellings, "Zoe Kowalska") {
			var inText, inBytes bool
			require.NoError(t, f.SQL.QueryRow(t.Context(), `SELECT $1::text ~ $2::text, encode($3::bytea, 'escape') ~ $2`,
				spelling, pattern, []byte("\x00\xff"+spelling)).Scan(&inText, &inBytes))
			require.Equal(t, spelling != "Zoe Kowalska", inText, spelling)
			require.Equal(t, inText, inBytes, spelling)
		}
	}
}

// notSearched are the columns in which nobody can write a text about a person, or whose table has a rule of its own.
var notSearched = []string{
	"api_keys.key_id", "api_keys.scope", "api_keys.secret_sha256", "ingest_keys.key_id", "ingest_keys.secret_sha256",
	"api_key_uses.key_id", "ingest_key_uses.key_id", "idempotency_bytes.key_id", "idempotency_keys.key_id",
	"rate_counters.key_id", "rate_windows.key_id", // Generated.
	"service_secrets.name", "service_secrets.secret", "receiver_secrets.name", "receiver_secrets.secret",
	"users.password_hash", "sign_in_links.token_sha256", "shared_links.token_sha256", "sign_in_links.role", "sign_in_links.purpose", "memberships.role",
	"sign_in_attempts.key_sha256", "sign_in_addresses.address_sha256", // Secrets, hashes and words of the service.
	"sessions.token_hash", "sessions.data", // Belong to no team. An erasure removes the notices.
	"teams.time_zone", "teams.limits", "alerts.rule", "alerts.detail", "alerts.outcome", "mails.kind", "mail_choices.told", "assignments.type", "assignments.home_or_travel", "streams.name",
	"ordered_chunks.chunk", "postponed_chunks.chunk", "rejected_uploads.reason", "rejected_uploads.precision",
	"source_state.precision", "sources.format", "devices.sampling", "unit_aliases.hardware_id", "unit_aliases.alias_key", // Words and names of the service.
	"idempotency_keys.method", "idempotency_keys.path", "idempotency_keys.body_sha256", // Ids of routes, and a hash.
	"audit_log.actor_kind", "audit_log.database_user", "audit_log.action", "audit_log.object_kind", "audit_log.object_id",
}

// TestSubjectPlaces writes a text into each column of the catalog that can have one, and finds it in all of them.
func TestSubjectPlaces(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.plantSubject(t)
	f.Exec(t, `WITH u AS (INSERT INTO users (email) VALUES ('x') RETURNING id)
		INSERT INTO memberships (user_id, team_id, role) SELECT id, $1, 'admin' FROM u`, f.TeamID)
	f.Exec(t, `INSERT INTO mail_choices (user_id, team_id, alerts, morning, weekly) SELECT user_id, team_id, role <> '', role <> '', role <> '' FROM memberships`)
	f.Exec(t, `INSERT INTO mails (team_id, user_id, kind) SELECT team_id, user_id, 'alerts' FROM memberships`)
	f.Exec(t, `INSERT INTO alerts (team_id, rule, subject, detail, since, noted_at) VALUES ($1, 'rejects', 'x', 'x', now(), now())`, f.TeamID)
	f.Exec(t, `INSERT INTO ingest_keys (key_id, team_id, secret_sha256) VALUES ('x', $1, sha256('x'))`, f.TeamID)
	f.Exec(t, `INSERT INTO api_key_uses (key_id, used_at) SELECT key_id, now() FROM api_keys ON CONFLICT DO NOTHING`)
	f.Exec(t, `INSERT INTO ingest_key_uses (key_id, used_at) SELECT key_id, now() FROM ingest_keys ON CONFLICT DO NOTHING`)
	f.Exec(t, `INSERT INTO unit_aliases (team_id, alias_key, alias, hardware_id) VALUES ($1, 'x', 'x', 'dev:99')`, f.TeamID)
	rows, err := f.SQL.Query(t.Context(), `SELECT table_name || '.' || column_name, quote_ident(table_name), quote_ident(column_name), data_type
		FROM information_schema.columns JOIN information_schema.tables USING (table_schema, table_name)
		WHERE table_schema = 'public' AND table_type = 'BASE TABLE' AND data_type IN ('text', 'jsonb', 'bytea')
		AND table_name <> 'goose_db_version' AND table_name || '.' || column_name <> ALL($1)`, notSearched)
	require.NoError(t, err)
	type column struct{ Name, Table, Column, Type string }
	columns, err := pgx.CollectRows(rows, pgx.RowToStructByPos[column])
	require.NoError(t, err)
	want := map[string]bool{}
	for _, c := range columns {
		value := map[string]string{
			"text": `'x nemo nobody'`, "jsonb": `'{"x": "NEMO \u006eobody"}'`,
			"bytea": `convert_to('{"x":"nemo\u0020NOBODY"}', 'UTF8')`,
		}[c.Type]
		f.Exec(t, fmt.Sprintf(`SET LOCAL session_replication_role = replica;
			UPDATE %[1]s SET %[2]s = %[3]s WHERE ctid = (SELECT ctid FROM %[1]s LIMIT 1)`, c.Table, c.Column, value))
		want[c.Name] = true
	}
	require.Greater(t, len(want), 20)
	record, err := f.SubjectRecord(t.Context(), f.TeamID, roomsensor.Subject{Label: new("Nemo Nobody")})
	require.NoError(t, err)
	require.Equal(t, want, placesOf(record.Mentions))
}

// TestEraseSubject plants a person in every place, erases it, and searches the whole database.
func TestEraseSubject(t *testing.T) {
	t.Parallel()
	f := setup(t)
	id := f.plantSubject(t)
	other, err := f.CreateTeam(t.Context(), "Other")
	require.NoError(t, err)
	subject := roomsensor.Subject{Label: new(subjectLabel)}
	ctx := roomsensor.WithActor(t.Context(), roomsensor.Actor{Kind: roomsensor.ActorOperator, Name: "root"})
	erase := func(team uuid.UUID, options people.SubjectErasure) roomsensor.Erasure {
		t.Helper()
		done, err := f.EraseSubject(ctx, team, subject, options)
		require.NoError(t, err)
		return done
	}
	f.Exec(t, `WITH u AS (INSERT INTO users (email) VALUES ('coach@example.com') RETURNING id),
		m AS (INSERT INTO memberships (user_id, team_id, role) SELECT id, $1, 'viewer' FROM u),
		c AS (INSERT INTO mail_choices (user_id, team_id, alerts, morning, weekly, told) SELECT id, $1, true, false, true, '{"bad":"x"}' FROM u)
		INSERT INTO mails (user_id, team_id, kind) SELECT id, $1, 'alerts' FROM u`, f.TeamID)
	before := f.occurrences(t, subjectLabel, subjectRef)

	none := erase(other.ID, people.SubjectErasure{Mentions: true})
	require.False(t, none.Changed(), "another team")
	plan := erase(f.TeamID, people.SubjectErasure{DryRun: true})
	require.Equal(t, before, f.occurrences(t, subjectLabel, subjectRef), "a dry run changes nothing")

	done := erase(f.TeamID, people.SubjectErasure{})
	require.Equal(t, changes(&plan), changes(&done))
	// Two assignments were created and ended, and one of them deleted. One has a note. One response shows one of them.
	require.Equal(t, []int64{1, 1, 6, 1, 1, 0, 0}, changes(&done))
	require.Equal(t, map[string]bool{
		"devices.display_name": true, "devices.metadata": true, "rejected_uploads.payload": true, "idempotency_keys.response": true,
		"source_state.message": true, "audit_log.object_name": true, "audit_log.device_name": true, "audit_log.after": true,
	}, placesOf(done.Mentions))
	erased, err := f.Assignment(t.Context(), f.TeamID, id)
	require.NoError(t, err)
	require.Equal(t, done.Name(), erased.Label)
	require.Nil(t, erased.ExternalRef)
	require.Len(t, f.ReadAll(t, f.DeviceID), 1, "the readings belong to the room")
	var response string
	require.NoError(t, f.SQL.QueryRow(ctx, `SELECT convert_from(response, 'UTF8') FROM idempotency_keys WHERE idempotency_key = 'shows the assignment'`).Scan(&response))
	// The bytes count, not only the values.
	want := fmt.Sprintf(`{"display_name":"x","n":1.50,"active_assignment":{"assignment_id":"%s","label":"%s","external_ref":null}}`, id, done.Name())
	require.True(t, want == response, response) //nolint:testifylint // Not JSONEq: replays have the same bytes.

	entries := f.audit(t, roomsensor.AuditQuery{})
	last := entries[len(entries)-1]
	require.Equal(t, "person", last.ObjectKind)
	require.Equal(t, done.Name(), last.ObjectName)
	require.Equal(t, "root", last.Actor.Name)
	require.JSONEq(t, `{"assignments":1,"notes":1,"audit_log":6,"idempotency_keys":1,"sessions":1,"source_state":0,"rejected_uploads":0}`, string(last.After))

	require.Equal(t, 1, f.Number(t, `SELECT count(*) FROM mail_choices WHERE told = '{}' AND NOT EXISTS (SELECT FROM mails)`),
		"what the deleted mail said is reported again")
	again := erase(f.TeamID, people.SubjectErasure{})
	require.False(t, again.Changed())
	require.Len(t, f.audit(t, roomsensor.AuditQuery{}), len(entries), "an erasure that changes nothing has no entry")

	// The operator changes the name and the tag, and erases the copies of the old ones.
	_, err = f.UpdateDevice(t.Context(), f.TeamID, f.DeviceID, rename("Room 1"))
	require.NoError(t, err)
	_, err = f.UpdateDevice(t.Context(), f.TeamID, f.DeviceID, tags("athlete", ""))
	require.NoError(t, err)
	rest := erase(f.TeamID, people.SubjectErasure{Mentions: true})
	require.EqualValues(t, 2, rest.Rejects)
	require.EqualValues(t, 1, rest.Messages)
	require.Empty(t, rest.Mentions)
	require.Empty(t, f.occurrences(t, subjectLabel, `o\u00eb`, `o\u00EB`))
	subject = roomsensor.Subject{ExternalRef: new(subjectRef)}
	erase(f.TeamID, people.SubjectErasure{Mentions: true})
	require.Empty(t, f.occurrences(t, subjectLabel, subjectRef))
	require.True(t, json.Valid(f.rejectPayload(t)))
	var counted, actual int64
	require.NoError(t, f.SQL.QueryRow(ctx, `SELECT bytes FROM reject_usage WHERE team_id = $1`, f.TeamID).Scan(&counted))
	require.NoError(t, f.SQL.QueryRow(ctx, `SELECT sum(reject_bytes(payload, detail)) FROM rejected_uploads`).Scan(&actual))
	require.Equal(t, actual, counted)
}

func (f *fixture) rejectPayload(t *testing.T) (payload []byte) {
	t.Helper()
	require.NoError(t, f.SQL.QueryRow(t.Context(), `SELECT payload FROM rejected_uploads LIMIT 1`).Scan(&payload))
	return payload
}

// TestEraseSubjectOthers checks that an erasure changes nothing about other people, whose label contains or shares the
// text.
func TestEraseSubjectOthers(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.assignAthlete(t, f.TeamID, f.DeviceID, "Kim", "crm-1", "2026-01-01T00:00:00Z")
	f.assignAthlete(t, f.TeamID, f.DeviceID, "Kim Lee", "crm-12", "2026-01-02T00:00:00Z")
	namesake := f.assignAthlete(t, f.TeamID, f.DeviceID, "Kim", "crm-2", "2026-01-03T00:00:00Z")
	done, err := f.EraseSubject(t.Context(), f.TeamID, roomsensor.Subject{ExternalRef: new("crm-1")}, people.SubjectErasure{})
	require.NoError(t, err)
	require.Equal(t, []int64{1, 0, 2, 0, 0, 0, 0}, changes(&done))
	require.True(t, placesOf(done.Mentions)["assignments.label"], "the namesake is reported")
	kept, err := f.Assignment(t.Context(), f.TeamID, namesake)
	require.NoError(t, err)
	require.Equal(t, "Kim", kept.Label)
	require.Len(t, f.audit(t, roomsensor.AuditQuery{Object: "Kim"}), 4)
}

// TestSubjectRecord checks that an export has all assignments, and the changes of deleted ones too.
func TestSubjectRecord(t *testing.T) {
	t.Parallel()
	f := setup(t)
	id := f.plantSubject(t)
	for _, subject := range []roomsensor.Subject{{Label: new(subjectLabel)}, {ExternalRef: new(subjectRef)}} {
		record, err := f.SubjectRecord(t.Context(), f.TeamID, subject)
		require.NoError(t, err)
		require.Len(t, record.Assignments, 1)
		require.Equal(t, id, record.Assignments[0].ID)
		require.Equal(t, "dev:1", record.Assignments[0].HardwareID)
		require.Len(t, record.Changes, 6)
		require.Len(t, record.Notes, 1)
		require.False(t, placesOf(record.Mentions)["notes.text"], "its own notes are no mentions")
		require.True(t, placesOf(record.Mentions)["devices.metadata"])
		require.False(t, placesOf(record.Mentions)["assignments.label"], "its own assignments are no mentions")
	}
	record, err := f.SubjectRecord(t.Context(), f.TeamID, roomsensor.Subject{Label: new(strings.ToLower(subjectLabel))})
	require.NoError(t, err)
	require.Empty(t, record.Assignments, "a label counts as a whole")
	require.True(t, slices.ContainsFunc(record.Mentions, func(m roomsensor.Mention) bool {
		return m.Table == "audit_log" && m.Text == subjectLabel
	}), "the changes of the assignments are mentions")
	require.True(t, placesOf(record.Mentions)["assignments.label"])
	record, err = f.SubjectRecord(t.Context(), f.TeamID, roomsensor.Subject{Label: new("Nobody")})
	require.NoError(t, err)
	require.Empty(t, record.Assignments)
	require.Empty(t, record.Changes)
	require.Empty(t, record.Mentions)
}

// TestDeleteUser checks that nothing about a person is left, but for the audit log, where the address can be replaced.
func TestDeleteUser(t *testing.T) {
	t.Parallel()
	f := setup(t)
	const email = "zoe@example.com"
	invited, err := f.Invite(t.Context(), f.TeamID, email, roomsensor.Admin, accounts.NewLink{ExpiresAt: time.Now().Add(time.Hour)})
	require.NoError(t, err)
	f.Exec(t, `INSERT INTO memberships (user_id, team_id, role) VALUES ($1, $2, 'admin')`, invited.ID, f.TeamID)
	f.Exec(t, `UPDATE users SET display_name = 'Zoë'`)
	f.Exec(t, `INSERT INTO sign_in_addresses VALUES ($1, sha256(''), now())`, invited.ID)
	actor := roomsensor.Actor{Kind: roomsensor.ActorPerson, Name: email, UserID: &invited.ID}
	_, err = f.UpdateDevice(roomsensor.WithActor(t.Context(), actor), f.TeamID, f.DeviceID, rename("Hall"))
	require.NoError(t, err)

	entries, err := f.DeleteUser(t.Context(), invited.ID, "")
	require.NoError(t, err)
	require.Zero(t, entries)
	for _, row := range f.occurrences(t, email, "Zoë", invited.ID.String()) {
		require.True(t, strings.HasPrefix(row, "audit_log: "), row)
	}
	require.NotEmpty(t, f.occurrences(t, email))
	_, err = f.DeleteUser(t.Context(), invited.ID, "erased person")
	require.ErrorIs(t, err, roomsensor.ErrNotFound)

	// The same with an erasure.
	f.Exec(t, `INSERT INTO users (id, email) VALUES ($1, $2)`, invited.ID, email)
	entries, err = f.DeleteUser(t.Context(), invited.ID, "erased person")
	require.NoError(t, err)
	require.Positive(t, entries)
	require.Empty(t, f.occurrences(t, email, "Zoë"))
	changed := f.audit(t, roomsensor.AuditQuery{Object: "Hall"})
	require.Equal(t, "erased person", changed[0].Actor.Name)
	require.JSONEq(t, `{"display_name":"Hall"}`, string(changed[0].After), "what the person did remains")
}
