package parquetenc_test

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"roomsensor/internal/parquetenc"
	"roomsensor/internal/roomsensor"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// newTeam returns devices in the order of their ids, each with a name of its own, except every third.
func newTeam(n int, suffix string) []roomsensor.NamedDevice {
	team := make([]roomsensor.NamedDevice, n)
	for i := range team {
		team[i].ID[0], team[i].ID[14], team[i].ID[15] = 0xde, byte(i>>8), byte(i)
		if i%3 != 2 {
			team[i].DisplayName = new(fmt.Sprint("Room ", i, suffix))
		}
	}
	return team
}

// encode returns a whole file.
func encode(t require.TestingT, team []roomsensor.NamedDevice, metrics []roomsensor.Metric, rows []roomsensor.ExportRow) []byte {
	var file bytes.Buffer
	w := parquetenc.NewWriter(&file, team, parquetenc.Columns{Metrics: metrics})
	for i := range rows {
		require.NoError(t, w.Write(&rows[i]))
	}
	require.NoError(t, w.Close())
	return file.Bytes()
}

func open(t require.TestingT, text []byte) *parquet.File {
	file, err := parquet.OpenFile(bytes.NewReader(text), int64(len(text)))
	require.NoError(t, err)
	return file
}

// stored is a row as a reader of the file sees it. Its columns are found by name.
type stored struct {
	BucketAt   int64    `parquet:"bucket_at,timestamp(microsecond)"`
	DeviceID   string   `parquet:"device_id"`
	Name       *string  `parquet:"display_name,optional"`
	CO2        *float32 `parquet:"co2_ppm,optional"`
	Temp       *float32 `parquet:"temp_c,optional"`
	Humidity   *float32 `parquet:"humidity_pct,optional"`
	Lux        *float32 `parquet:"lux,optional"`
	Sound      *float32 `parquet:"spl_db,optional"`
	Mask       int32    `parquet:"valid_mask"`
	IngestedAt int64    `parquet:"ingested_at,timestamp(microsecond)"`
}

// want returns what a reader must see of a row.
func want(row *roomsensor.ExportRow, names map[uuid.UUID]*string, metrics []roomsensor.Metric) stored {
	s := stored{
		BucketAt: row.BucketAt.UnixMicro(), DeviceID: row.DeviceID.String(), Name: names[row.DeviceID],
		Mask: int32(row.Values.Mask()), IngestedAt: row.IngestedAt.UnixMicro(),
	}
	for _, m := range metrics {
		if x, ok := row.Values.Get(m); ok {
			*[]**float32{&s.CO2, &s.Temp, &s.Humidity, &s.Lux, &s.Sound}[m] = &x
		}
	}
	return s
}

// requireRows requires that a file has some rows, in order.
func requireRows(
	t require.TestingT, text []byte, team []roomsensor.NamedDevice, metrics []roomsensor.Metric, rows []roomsensor.ExportRow,
) {
	names := map[uuid.UUID]*string{}
	for _, d := range team {
		names[d.ID] = d.DisplayName
	}
	got, err := parquet.Read[stored](bytes.NewReader(text), int64(len(text)))
	require.NoError(t, err)
	require.Len(t, got, len(rows))
	for i := range rows {
		require.Equal(t, want(&rows[i], names, metrics), got[i], i)
	}
}

// TestWriter checks that a reader finds what was written: all values of 32 bits, nulls, and times to the microsecond.
func TestWriter(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		team := newTeam(rapid.IntRange(1, 5).Draw(rt, "devices"), rapid.String().Draw(rt, "suffix"))
		metrics, err := roomsensor.ParseMetrics(nil)
		require.NoError(rt, err)
		metrics = metrics[rapid.IntRange(0, 4).Draw(rt, "metrics left out"):]
		rows := rapid.SliceOf(rapid.Custom(func(rt *rapid.T) roomsensor.ExportRow {
			row := roomsensor.ExportRow{
				DeviceID:   team[rapid.IntRange(0, len(team)-1).Draw(rt, "device")].ID,
				BucketAt:   noon.Add(time.Duration(rapid.IntRange(-1e6, 1e6).Draw(rt, "bucket")) * roomsensor.BucketLength),
				IngestedAt: time.UnixMicro(rapid.Int64Range(-62135596800000000, 253402300799999999).Draw(rt, "ingested_at")).UTC(),
			}
			for _, m := range roomsensor.Metrics {
				if rapid.Bool().Draw(rt, "has "+m.String()) {
					row.Values.Set(m, rapid.OneOf(rapid.Float32(), rapid.SampledFrom([]float32{
						0, 1, -1, math.SmallestNonzeroFloat32, math.MaxFloat32, 16777216, 0.1,
					})).Draw(rt, m.String()))
				}
			}
			return row
		})).Draw(rt, "rows")
		requireRows(rt, encode(rt, team, metrics, rows), team, metrics, rows)
	})
}

// TestSchema checks the columns of A7.2, with and without rows.
func TestSchema(t *testing.T) {
	t.Parallel()
	team := newTeam(3, "")
	row := roomsensor.ExportRow{DeviceID: team[0].ID, BucketAt: noon, IngestedAt: noon}
	for _, rows := range [][]roomsensor.ExportRow{nil, {row}} {
		file := open(t, encode(t, team, roomsensor.Metrics[:], rows))
		require.EqualValues(t, len(rows), file.NumRows())
		const timestamp = "int64 %s (TIMESTAMP(isAdjustedToUTC=true,unit=MICROS))"
		want := []string{
			"required " + fmt.Sprintf(timestamp, "bucket_at"), "required binary device_id (STRING)",
			"optional binary display_name (STRING)",
			"optional float co2_ppm", "optional float temp_c", "optional float humidity_pct", "optional float lux", "optional float spl_db",
			"required int32 valid_mask (INT(32,true))", "required " + fmt.Sprintf(timestamp, "ingested_at"),
		}
		lines := strings.Split(strings.TrimSpace(file.Schema().String()), "\n")
		require.Len(t, lines, len(want)+2)
		for i := range want {
			require.Equal(t, want[i]+";", strings.TrimSpace(lines[1+i]))
		}
	}
	some := open(t, encode(t, team, []roomsensor.Metric{roomsensor.Lux, roomsensor.Sound}, nil))
	var columns []string
	for _, c := range some.Root().Columns() {
		columns = append(columns, c.Name())
	}
	require.Equal(t, []string{"bucket_at", "device_id", "display_name", "lux", "spl_db", "valid_mask", "ingested_at"}, columns)
}

// TestRowGroups checks that the memory of a row group is bounded: by its rows, and by the bytes of its dictionaries if
// there are many devices with long names.
func TestRowGroups(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		team   []roomsensor.NamedDevice
		rows   int
		groups []int64
	}{
		"few devices":                  {newTeam(3, ""), 70_000, []int64{65_536, 70_000 - 65_536}},
		"many devices with long names": {newTeam(3_000, strings.Repeat("ä", 400)), 3_000, []int64{1_823, 3_000 - 1_823}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rows := make([]roomsensor.ExportRow, tc.rows)
			for i := range rows {
				at := noon.Add(time.Duration(i/len(tc.team)) * roomsensor.BucketLength)
				rows[i] = roomsensor.ExportRow{DeviceID: tc.team[i%len(tc.team)].ID, BucketAt: at, IngestedAt: at}
				rows[i].Values.Set(roomsensor.Metric(i%roomsensor.MetricCount), float32(i))
			}
			text := encode(t, tc.team, roomsensor.Metrics[:], rows)
			requireRows(t, text, tc.team, roomsensor.Metrics[:], rows)
			var groups []int64
			for _, group := range open(t, text).Metadata().RowGroups {
				groups = append(groups, group.NumRows)
				for i := range group.Columns {
					requireEncoding(t, &group.Columns[i].MetaData)
				}
			}
			require.Equal(t, tc.groups, groups)
		})
	}
}

// requireEncoding requires that a column is compressed and that all pages of text have a dictionary.
func requireEncoding(t *testing.T, column *format.ColumnMetaData) {
	t.Helper()
	require.Equal(t, format.Zstd, column.Codec, column.PathInSchema)
	if column.Type != format.ByteArray {
		return
	}
	require.NotZero(t, column.DictionaryPageOffset, column.PathInSchema)
	for _, pages := range column.EncodingStats {
		require.True(t, pages.PageType == format.DictionaryPage || pages.Encoding == format.RLEDictionary, column.PathInSchema)
	}
}

// TestAbandonedFile checks that no reader takes a part of a file for the whole.
func TestAbandonedFile(t *testing.T) {
	t.Parallel()
	team := newTeam(2, "")
	var file bytes.Buffer
	w := parquetenc.NewWriter(&file, team, parquetenc.Columns{Metrics: roomsensor.Metrics[:]})
	for i := range 70_000 {
		row := roomsensor.ExportRow{DeviceID: team[i%2].ID, BucketAt: noon.Add(time.Duration(i) * roomsensor.BucketLength)}
		require.NoError(t, w.Write(&row))
	}
	require.NotZero(t, file.Len(), "the first row group was written")
	_, err := parquet.OpenFile(bytes.NewReader(file.Bytes()), int64(file.Len()))
	require.Error(t, err)
}
