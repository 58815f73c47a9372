package readers_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/csvenc"
	"roomsensor/internal/parquetenc"
	"roomsensor/internal/roomsensor"
)

// rowCount is more than a row group has.
const rowCount = 100_000

// names are the display names of the devices, the last of which has none. The CSV quotes some of them, and adds an
// apostrophe to others.
var names = []string{"Hall", `=Gym, "A"`, "室温 🙂", "line\nend", "@SUM(A1)", "'quoted'"}

// export is an export of the same readings in both formats.
type export struct {
	dir     string // has readings.csv and readings.parquet
	parquet []byte
	team    []roomsensor.NamedDevice
	rows    []roomsensor.ExportRow
}

// newExport writes an export of readings with all kinds of values and nulls.
func newExport(t *testing.T) *export {
	t.Helper()
	e := &export{dir: t.TempDir()}
	for i := range len(names) + 1 {
		d := roomsensor.NamedDevice{ID: uuid.UUID{0: 0xde, 15: byte(i)}}
		if i < len(names) {
			d.DisplayName = &names[i]
		}
		e.team = append(e.team, d)
	}
	random := rand.New(rand.NewPCG(1, 2))
	first := time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)
	for i := range rowCount {
		at := first.Add(time.Duration(i/len(e.team)) * roomsensor.BucketLength)
		row := roomsensor.ExportRow{
			DeviceID: e.team[i%len(e.team)].ID, BucketAt: at,
			IngestedAt: at.Add(time.Duration(random.Int64N(1e9)) * time.Microsecond),
		}
		for _, m := range roomsensor.Metrics {
			if random.IntN(10) > 0 {
				row.Values.Set(m, draw(random))
			}
		}
		e.rows = append(e.rows, row)
	}
	e.write(t)
	return e
}

// draw returns a value as sensors measure it, or any of 32 bits.
func draw(random *rand.Rand) float32 {
	switch random.IntN(10) {
	case 0:
		return math.Float32frombits(random.Uint32()) // Set leaves out NaN and infinities.
	case 1:
		return 0
	}
	return float32(random.IntN(100_000)) / 10
}

func (e *export) write(t *testing.T) {
	t.Helper()
	metrics := roomsensor.Metrics[:]
	long := csvenc.NewLong(e.team, csvenc.Columns{Metrics: metrics, IngestedAt: true})
	text := long.AppendHeader(nil)
	var file bytes.Buffer
	w := parquetenc.NewWriter(&file, e.team, parquetenc.Columns{Metrics: metrics})
	for i := range e.rows {
		text = long.AppendRow(text, &e.rows[i])
		require.NoError(t, w.Write(&e.rows[i]))
	}
	require.NoError(t, w.Close())
	e.parquet = file.Bytes()
	require.NoError(t, os.WriteFile(e.path("readings.csv"), text, 0o600))
	require.NoError(t, os.WriteFile(e.path("readings.parquet"), e.parquet, 0o600))
}

func (e *export) path(name string) string { return filepath.Join(e.dir, name) }

// cells returns a row as text: null is "null".
func (e *export) cells(row *roomsensor.ExportRow) []string {
	cells := []string{fmt.Sprint(row.BucketAt.UnixMicro()), row.DeviceID.String(), "null"}
	if name := e.team[row.DeviceID[15]].DisplayName; name != nil {
		cells[2] = *name
	}
	for _, m := range roomsensor.Metrics {
		cell := "null"
		if x, ok := row.Values.Get(m); ok {
			cell = fmt.Sprint(math.Float32bits(x))
		}
		cells = append(cells, cell)
	}
	return append(cells, fmt.Sprint(row.Values.Mask()), fmt.Sprint(row.IngestedAt.UnixMicro()))
}
