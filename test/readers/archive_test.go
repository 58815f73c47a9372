//go:build cgo

package readers_test

import (
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/admin/archive"
	"roomsensor/internal/config"
	"roomsensor/internal/csvimport"
	"roomsensor/internal/mapping"
	"roomsensor/internal/roomsensor"
	"roomsensor/test/storetest"
)

// statements are the SQL of the page about archives, with the directory of an archive and a team.
func statements(t *testing.T, dir string, team uuid.UUID) (all []string) {
	t.Helper()
	page, err := os.ReadFile("../../docs/operate/retention.md")
	require.NoError(t, err)
	for _, block := range strings.Split(string(page), "```sql\n")[1:] {
		block, _, _ = strings.Cut(block, "```")
		for statement := range strings.SplitSeq(block, ";\n") {
			if strings.TrimSpace(statement) != "" {
				all = append(all, strings.NewReplacer("archive/", dir+"/", "month.csv", dir+"/month.csv", "TEAM_ID", team.String()).
					Replace(statement))
			}
		}
	}
	require.Len(t, all, 4)
	return all
}

// TestDuckDBArchive reads an archive of the database with the statements of its page, and brings a month back as CSV.
func TestDuckDBArchive(t *testing.T) {
	t.Parallel()
	f := storetest.New(t)
	second := f.NewDevice(t, "dev:2")
	f.Fill(t, 40*288, f.DeviceID, second)
	f.Exec(t, `UPDATE readings SET measured_at = bucket_at + interval '90.5 seconds', co2_ppm = 400 + co2_ppm::int % 5000,
		temp_c = 20 + random()`)
	dir := t.TempDir()
	files, err := archive.Open(dir, &config.ObjectStore{})
	require.NoError(t, err)
	_, err = archive.Write(t.Context(), f.Store, files, archive.Options{
		Teams: []uuid.UUID{f.TeamID}, Until: storetest.At("2026-03-01T00:00:00Z"), Progress: func(string) {},
	})
	require.NoError(t, err)

	d, all := open(t), statements(t, dir, f.TeamID)
	query := func(statement string) *sql.Rows {
		t.Helper()
		rows, err := d.QueryContext(t.Context(), statement)
		require.NoError(t, err, statement)
		t.Cleanup(func() { require.NoError(t, rows.Close()) })
		return rows
	}
	rows, months := query(all[0]), []string{}
	for rows.Next() {
		var team, month string
		var n, devices, bytes int64
		require.NoError(t, rows.Scan(&team, &month, &n, &devices, &bytes))
		require.Equal(t, f.TeamID.String(), team)
		months = append(months, fmt.Sprint(month, " ", n, " ", devices))
	}
	require.Equal(t, []string{"2026-01 17856 2", "2026-02 5184 2"}, months)
	rows = query(all[1])
	found := 0
	for ; rows.Next(); found++ {
		var device string
		var mean, want float64
		var n, count int64
		require.NoError(t, rows.Scan(&device, &mean, &n))
		require.NoError(t, f.SQL.QueryRow(t.Context(), `SELECT avg(co2_ppm), count(*) FROM readings
			WHERE device_id = $1 AND bucket_at < '2026-02-01Z'`, device).Scan(&want, &count))
		require.Equal(t, count, n)
		require.InEpsilon(t, want, mean, 1e-9)
	}
	require.Equal(t, 2, found)
	require.False(t, query(all[2]).Next(), "the index has the rows of all files")

	// A sum over months, as DuckDB and PostgreSQL compute it.
	var want float64
	require.NoError(t, f.SQL.QueryRow(t.Context(), `SELECT sum(temp_c::float8) FROM readings`).Scan(&want))
	var sum float64
	require.NoError(t, d.QueryRowContext(t.Context(), `SELECT sum(temp_c::DOUBLE) FROM read_parquet('`+dir+`/*/*/readings.parquet')`).Scan(&sum))
	require.InEpsilon(t, want, sum, 1e-9)

	_, err = d.ExecContext(t.Context(), all[3])
	require.NoError(t, err, all[3])
	requireImport(t, f, filepath.Join(dir, "month.csv"))
}

// requireImport reads a CSV file as `roomsensor import` does, and compares it with the readings of January.
func requireImport(t *testing.T, f *storetest.Fixture, path string) {
	t.Helper()
	file, err := os.Open(path)
	require.NoError(t, err)
	defer func() { require.NoError(t, file.Close()) }()
	format, err := mapping.NewTimeFormat("rfc3339", "")
	require.NoError(t, err)
	options := &csvimport.Options{Time: "measured_at", Unit: "hardware_id", TimeFormat: format, Now: time.Now()}
	for _, m := range roomsensor.Metrics {
		column, err := csvimport.ParseMetricColumn(m.String() + "=" + m.String())
		require.NoError(t, err)
		options.Metrics = append(options.Metrics, column)
	}
	in, err := csvimport.Open(file, options)
	require.NoError(t, err)
	type measurement struct {
		unit       string
		measuredAt time.Time
		co2, temp  float32
	}
	got := map[measurement]bool{}
	for {
		line, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		require.Empty(t, line.Problem)
		co2, _ := line.Values.Get(roomsensor.CO2)
		temp, _ := line.Values.Get(roomsensor.Temp)
		got[measurement{strings.Clone(line.HardwareID), line.MeasuredAt.UTC(), co2, temp}] = true
	}
	require.Len(t, got, 2*31*288)
	rows, err := f.SQL.Query(t.Context(), `SELECT h.hardware_id, r.measured_at, r.co2_ppm, r.temp_c
		FROM readings r JOIN device_hardware h USING (device_id) WHERE r.bucket_at < '2026-02-01Z'`)
	require.NoError(t, err)
	defer rows.Close()
	for rows.Next() {
		var m measurement
		require.NoError(t, rows.Scan(&m.unit, &m.measuredAt, &m.co2, &m.temp))
		m.measuredAt = m.measuredAt.UTC()
		require.True(t, got[m], m)
	}
	require.NoError(t, rows.Err())
}
