package e2e_test

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"

	"roomsensor/client"
)

// TestArchiveImport archives a month, loses its readings, and brings them back with an import of the file as CSV. The module
// test/readers writes that CSV with DuckDB. It takes 5 seconds, because it starts the service.
func TestArchiveImport(t *testing.T) {
	t.Parallel()
	e := newService(t)
	e.receiver = e.start("ingest", "--no-worker")
	e.settings["INGEST_URL"], e.settings["INGEST_KEY"] = e.receiver.url, e.ingestKey
	from := time.Date(2024, time.January, 5, 0, 0, 0, 0, time.UTC)
	window := client.Between(from, from.AddDate(0, 0, 7))
	hall := e.newDevice("dev:1", "--name", "Hall")
	e.uploadSeries("dev:1", "", from, 300)
	e.settle()
	before := e.api().csv(window, hall)
	dir := t.TempDir()
	require.InDelta(t, 1, e.command("reading", "archive", "--to", dir)["written"], 0)
	e.exec(`DELETE FROM readings`)

	found, err := filepath.Glob(filepath.Join(dir, "*", "month=2024-01", "readings.parquet"))
	require.NoError(t, err)
	require.Len(t, found, 1)
	rows, err := parquet.ReadFile[struct {
		MeasuredAt time.Time `parquet:"measured_at,timestamp(microsecond)"`
		HardwareID string    `parquet:"hardware_id,optional"`
		CO2PPM     float32   `parquet:"co2_ppm,optional"`
	}](found[0])
	require.NoError(t, err)
	month := filepath.Join(dir, "month.csv")
	file, err := os.Create(month)
	require.NoError(t, err)
	out := csv.NewWriter(file)
	require.NoError(t, out.Write([]string{"measured_at", "hardware_id", "co2_ppm"}))
	for _, r := range rows {
		require.NoError(t, out.Write([]string{
			r.MeasuredAt.Format(time.RFC3339Nano), r.HardwareID, strconv.FormatFloat(float64(r.CO2PPM), 'f', -1, 32),
		}))
	}
	out.Flush()
	require.NoError(t, out.Error())
	require.NoError(t, file.Close())
	sent := e.command("import", month, "--time", "measured_at", "--unit", "hardware_id", "--metric", "co2_ppm=co2_ppm")["sent"]
	require.InDelta(t, 300, sent, 0)
	e.settle()
	require.Equal(t, before, e.api().csv(window, hall))
	require.InDelta(t, 1, e.command("reading", "archive", "--to", dir)["written"], 0, "they have a new ingested_at")
}
