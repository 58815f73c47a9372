package api_test

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
)

func (f *fixture) exec(t testing.TB, sql string, args ...any) {
	t.Helper()
	_, err := f.sql.Exec(t.Context(), sql, args...)
	require.NoError(t, err)
}

func (f *fixture) addTeam(t testing.TB, id uuid.UUID) {
	t.Helper()
	f.exec(t, `INSERT INTO teams (id, name) VALUES ($1, 'Team <&>')`, id)
}

func (f *fixture) addDevice(t testing.TB, team, id uuid.UUID, hardwareID string) {
	t.Helper()
	f.exec(t, `INSERT INTO devices (id, team_id, hardware_id) VALUES ($1, $2, $3)`, id, team, hardwareID)
}

func (f *fixture) nameDevice(t testing.TB, id uuid.UUID, name string) {
	t.Helper()
	f.exec(t, `UPDATE devices SET display_name = $2 WHERE id = $1`, id, name)
}

// addKey makes a key and returns its text.
func (f *fixture) addKey(t testing.TB, key roomsensor.Key) string {
	t.Helper()
	var text string
	key.ID, text, key.SecretSHA256 = roomsensor.GenerateKey(roomsensor.APIKey)
	_, err := f.store.CreateAPIKey(t.Context(), key)
	require.NoError(t, err)
	return text
}

// addReading stores a reading by SQL alone, so that its ingested_at is known.
func (f *fixture) addReading(t testing.TB, device uuid.UUID, at time.Time, co2 float32) {
	t.Helper()
	f.exec(t, `INSERT INTO readings (device_id, bucket_at, co2_ppm, ingested_at) VALUES ($1, $2, $3, $4)`,
		device, at, co2, start)
}

// addReadings stores n readings, one a bucket from an instant on; the number is
// their co2_ppm.
func (f *fixture) addReadings(t testing.TB, device uuid.UUID, from time.Time, n int) {
	t.Helper()
	f.exec(t, `INSERT INTO readings (device_id, bucket_at, co2_ppm, ingested_at)
		SELECT $1, $2::timestamptz + i * INTERVAL '5 minutes', i, $3 FROM generate_series(0, $4 - 1) i`,
		device, from, start, n)
}

// addAssignment starts a block; end is nil while it is open.
func (f *fixture) addAssignment(t testing.TB, device, id uuid.UUID, from time.Time, end *time.Time) {
	t.Helper()
	f.exec(t, `INSERT INTO assignments (id, device_id, type, label, home_or_travel, started_at, ended_at)
		VALUES ($1, $2, 'place', 'Room 12', 'travel', $3, $4)`, id, device, from, end)
}

// number makes an id that ends in n.
func number(prefix byte, n int) uuid.UUID {
	id := uuid.MustParse("00000000-0000-4000-8000-000000000000")
	id[0], id[14], id[15] = prefix, byte(n>>8), byte(n)
	return id
}

var update = flag.Bool("update", false, "write the golden files anew")

// What differs from run to run in an answer.
var fleeting = regexp.MustCompile(`req_[a-z0-9]{26}`)

// requireGolden compares bytes on the wire with a file.
func requireGolden(t *testing.T, name string, got []byte) {
	t.Helper()
	got = fleeting.ReplaceAll(got, []byte("req_x"))
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, got, 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got))
}
