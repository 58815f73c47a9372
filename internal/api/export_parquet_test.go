package api_test

import (
	"bytes"
	"cmp"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
	"roomsensor/test/conformance"
)

// parquet reads an export and returns its columns, and the rows as the cells of a CSV: times and numbers as in JSON, an
// empty cell for null.
func (f *fixture) parquet(t *testing.T, query string) (columns []string, records []record) {
	t.Helper()
	got := f.get(t, "/readings.parquet"+query).requireOK(t)
	file, err := parquet.OpenFile(bytes.NewReader(got.body), int64(len(got.body)))
	require.NoError(t, err)
	require.Equal(t, got.header.Get("X-Row-Count"), strconv.FormatInt(file.NumRows(), 10))
	for _, column := range file.Root().Columns() {
		columns = append(columns, column.Name())
	}
	for _, group := range file.RowGroups() {
		rows := group.Rows()
		batch := make([]parquet.Row, group.NumRows())
		n, _ := rows.ReadRows(batch) // Returns io.EOF with the last rows.
		require.Len(t, batch, n)
		require.NoError(t, rows.Close())
		for _, row := range batch {
			r := record{}
			for _, v := range row {
				r[columns[v.Column()]] = cell(columns[v.Column()], v)
			}
			records = append(records, r)
		}
	}
	return columns, records
}

func cell(column string, v parquet.Value) string {
	switch {
	case v.IsNull():
		return ""
	case strings.HasSuffix(column, "_at"):
		return roomsensor.FormatTime(time.UnixMicro(v.Int64()))
	case v.Kind() == parquet.Float:
		return string(roomsensor.AppendNumber(nil, v.Float()))
	}
	return v.String()
}

// TestReadingsParquet compares exports with the CSV of the same readings.
func TestReadingsParquet(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.addNamedDevices(t)
	t.Run("columns and values", f.testParquetValues)
	t.Run("parameters", f.testParquetParameters)
	t.Run("headers", f.testParquetHeaders)
}

func (f *fixture) testParquetValues(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "A7.2", "A7.3")
	g := setup(t)
	g.nameDevice(t, deviceID, `=Gym, "A"`) // The CSV has an apostrophe before it.
	g.addDevice(t, teamID, testID(0xde, 2), "dev:2")
	g.exec(t, `INSERT INTO readings (device_id, bucket_at, co2_ppm, temp_c, humidity_pct, lux, spl_db, ingested_at) VALUES
		($1, '2026-11-20 09:00Z', 612, 21.4, 40.1, 120, 38.2, '2026-11-20 09:05:00.000001Z'),
		($1, '2026-11-20 09:05Z', 1e-45, 3.4028235e38, -0, 0, NULL, '2026-11-20 09:10:07.12Z'),
		($1, '2026-11-20 09:10Z', 'NaN', 'Infinity', '-Infinity', 16777216, 0.1, '-infinity'),
		($1, '2026-11-20 09:20Z', NULL, NULL, NULL, NULL, NULL, 'infinity'),
		($2, '2026-11-20 09:05Z', 1e20, 1e-20, 123456.79, 99999.99, 1, now())`, deviceID, testID(0xde, 2))
	columns, records := g.parquet(t, "")
	wantColumns, want := g.export(t, "?include=ingested_at")
	require.Equal(t, wantColumns, columns)
	for _, r := range want {
		r["display_name"] = strings.TrimPrefix(r["display_name"], "'")
	}
	require.Equal(t, want, records, "the rows of the long CSV, in its order")
	require.Len(t, records, 5)
}

func (f *fixture) testParquetParameters(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "A7.1")
	second, assigned := testID(0xde, 2).String(), "assignment_id="+testID(0xa5, 1).String()
	for _, query := range []string{
		"", "?last=8m", "?last=1m", "?from=2026-11-20T09:50:00Z&to=2026-11-20T09:55:00Z", "?devices=" + second, "?" + assigned,
		"?" + assigned + "&devices=" + second, "?metadata.site=north", "?metadata.site=north&metadata.floor=1", "?metrics=lux",
		"?metrics=spl_db,co2_ppm&devices=" + deviceID.String(), "?metadata.site=south",
	} {
		columns, records := f.parquet(t, query)
		wantColumns, want := f.export(t, "?include=ingested_at"+cmp.Or(strings.Replace(query, "?", "&", 1)))
		require.Equal(t, wantColumns, columns, query)
		require.Equal(t, want, records, query)
	}
	conformance.Covers(t, "A18.3")
	f.exec(t, "UPDATE assignments SET (label, external_ref) = ('Room 12', 'crm-7')")
	columns, records := f.parquet(t, "?include=ingested_at,assignment&time_zone=Europe/Berlin")
	wantColumns, want := f.export(t, "?include=ingested_at,assignment&time_zone=Europe/Berlin")
	require.Equal(t, wantColumns, columns)
	require.Equal(t, want, records)
	require.Contains(t, fmt.Sprint(records), "external_ref:crm-7")
	require.Contains(t, fmt.Sprint(records), "external_ref: ")
	for _, query := range []string{"shape=long", "columns=id", "excel=true", "format=parquet", "limit=1"} {
		name, _, _ := strings.Cut(query, "=")
		f.get(t, "/readings.parquet?"+query).requireInvalid(t, name)
	}
	require.Contains(t, f.get(t, "/readings.csv?shape=parquet").message(t), "/readings.parquet")
}

func (f *fixture) testParquetHeaders(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "A7.4", "A0.2")
	for _, coding := range []string{"identity", "gzip", "zstd, gzip, br"} {
		got := f.get(t, "/readings.parquet?last=2h", header("Accept-Encoding", coding), header("Range", "bytes=-8")).requireOK(t)
		require.True(t, bytes.HasPrefix(got.body, []byte("PAR1")))
		require.True(t, bytes.HasSuffix(got.body, []byte("PAR1")))
		require.Equal(t, "application/vnd.apache.parquet", got.header.Get("Content-Type"))
		require.Equal(t, `attachment; filename="readings_20261120T080000Z_20261120T100000Z.parquet"`, got.header.Get("Content-Disposition"))
		require.Equal(t, "none", got.header.Get("Accept-Ranges"))
		require.Empty(t, got.header.Get("Content-Encoding"))
		require.Empty(t, got.header.Get("Vary"))
		head := f.head(t, "/readings.parquet?last=2h", header("Accept-Encoding", coding)).requireOK(t)
		require.Equal(t, got.header.Get("X-Row-Count"), head.header.Get("X-Row-Count"))
	}
	got := f.get(t, "/readings.parquet?devices="+url.QueryEscape(fmt.Sprint(deviceID, ",", unknownID)))
	got.requireError(t, roomsensor.CodeDeviceNotFound, "devices")
}
