package api_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/conformance"
	"roomsensor/internal/roomsensor"
)

// deviceAnswers are all answers that show the fixture's device, PATCH included.
func (f *fixture) deviceAnswers(t *testing.T) []string {
	t.Helper()
	device := "/devices/" + deviceID.String()
	return []string{
		string(f.get(t, device).body), string(f.get(t, "/devices").body), string(f.get(t, "/devices/current").body),
		string(f.patch(t, `{"metadata":{}}`).body),
	}
}

func TestSignalIsAlwaysAnObject(t *testing.T) {
	t.Parallel()
	f := setup(t)
	for _, tc := range []struct {
		sentence, set, want string
	}{
		{"decision 14.1", "NULL, NULL", `"signal":{"rssi_dbm":null,"bars":null}`},
		{"decision 14.1", "-113, NULL", `"signal":{"rssi_dbm":-113,"bars":null}`},
		{"decision 14.1", "NULL, 3", `"signal":{"rssi_dbm":null,"bars":3}`},
		{"decision 14.2", "0, 0", `"signal":{"rssi_dbm":0,"bars":0}`},
		{"decision 14.2", "-51, 5", `"signal":{"rssi_dbm":-51,"bars":5}`},
	} {
		conformance.Covers(t, tc.sentence)
		f.exec(t, `UPDATE devices SET (rssi_dbm, signal_bars) = (`+tc.set+`)`)
		for _, answer := range f.deviceAnswers(t) {
			require.Contains(t, answer, tc.want)
		}
	}
	for _, bars := range []string{"-1", "6"} {
		_, err := f.sql.Exec(t.Context(), `UPDATE devices SET signal_bars = `+bars)
		require.ErrorContains(t, err, "check constraint", "no answer can show what is not stored")
	}
}

func TestActiveAssignmentIsAlwaysThere(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 14.3", "decision 15.3")
	f := setup(t)
	end, next := start.Add(-time.Hour), start.Add(-time.Minute)
	f.addAssignment(t, deviceID, number(0xa5, 1), start.Add(-day), &end)
	for _, answer := range f.deviceAnswers(t) {
		require.Contains(t, answer, `"active_assignment":null`)
	}
	f.addAssignment(t, deviceID, number(0xa5, 2), next, nil)
	for _, ref := range []string{"null", `"crm-7"`} {
		for _, answer := range f.deviceAnswers(t) {
			require.Contains(t, answer, `"active_assignment":{"assignment_id":"`+number(0xa5, 2).String()+
				`","label":"Room 12","started_at":"`+roomsensor.FormatTime(next)+`","external_ref":`+ref+`}`)
		}
		f.exec(t, `UPDATE assignments SET external_ref = 'crm-7'`)
	}
}

func TestFieldsOfAssignments(t *testing.T) {
	t.Parallel()
	f := setup(t)
	block := number(0xa5, 1)
	f.addAssignment(t, deviceID, block, start, nil)
	for _, tc := range []struct{ sentence, set, want string }{
		{"decision 15.2", "'place', 'home', NULL, NULL", `"place","label":"Room 12","home_or_travel":"home","started_at":"2026-11-20T10:00:00Z","ended_at":null,"external_ref":null`},
		{"decision 15.1", "'place', 'travel', NULL, ''", `"place","label":"Room 12","home_or_travel":"travel","started_at":"2026-11-20T10:00:00Z","ended_at":null,"external_ref":""`},
		{"decision 15.1", "'athlete', 'home', '2026-11-20 10:00:01Z', 'x'", `"athlete","label":"Room 12","home_or_travel":"home","started_at":"2026-11-20T10:00:00Z","ended_at":"2026-11-20T10:00:01Z","external_ref":"x"`},
	} {
		conformance.Covers(t, tc.sentence)
		f.exec(t, `UPDATE assignments SET (type, home_or_travel, ended_at, external_ref) = (`+tc.set+`)`)
		want := `{"data":[{"assignment_id":"` + block.String() + `","type":` + tc.want + `}],"next_cursor":null}`
		require.Equal(t, want, string(f.get(t, assignmentsPath).body))
	}
	for _, set := range []string{"type = 'room'", "type = 'Place'", "home_or_travel = 'away'", "home_or_travel = ''", "type = NULL", "home_or_travel = NULL"} {
		_, err := f.sql.Exec(t.Context(), `UPDATE assignments SET `+set)
		require.ErrorContains(t, err, "constraint", "no answer can show what is not stored")
	}
}

func TestStatusInEveryAnswer(t *testing.T) {
	t.Parallel()
	f := setup(t)
	for _, tc := range []struct {
		sentence string
		age      time.Duration
		want     roomsensor.Status
	}{
		{"decision 16.1", 0, roomsensor.Online},
		{"decision 16.1", time.Hour - time.Microsecond, roomsensor.Online},
		{"decision 16.2", time.Hour, roomsensor.Stale},
		{"decision 16.2", day, roomsensor.Stale},
		{"decision 16.3", day + time.Microsecond, roomsensor.Offline},
		{"decision 16.3", 10_000 * day, roomsensor.Offline},
	} {
		conformance.Covers(t, tc.sentence)
		f.exec(t, `UPDATE devices SET last_seen_at = $1`, start.Add(-tc.age))
		for _, answer := range f.deviceAnswers(t) {
			require.Contains(t, answer, `"status":"`+string(tc.want)+`"`, "%s", tc.age)
		}
	}
	f.exec(t, `UPDATE devices SET last_seen_at = NULL`)
	for _, answer := range f.deviceAnswers(t) {
		require.Contains(t, answer, `"status":"offline","last_seen_at":null`)
	}
	f.exec(t, `UPDATE devices SET last_seen_at = $1`, start)
	f.clock.advance(time.Hour)
	require.Equal(t, "stale", decode[device](t, f.get(t, "/devices/"+deviceID.String())).Status, "time passes")
}
