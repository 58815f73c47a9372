package api_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/conformance"
)

// oddNames are what a CSV must carry: marks of its own, line ends, what a
// spreadsheet would run, other scripts. Those with control characters come by
// SQL alone.
var oddNames = []string{
	"plain", "two words", "semi;colon", "it's", `"`, `say "hi"`, ",", "a,b", "line\nend", "line\r\nend", "\rstart", "tab\tin",
	"\tstart", "=1+1", "+1", "-1", "@SUM(A1)", "=A1,B1", `="x"`, "'=1", "1=1", " =1", "室温", "Büro", "\u202egnirts", "\ufeffmark", "🙂", "",
}

// record is a line of the long shape, as its columns are named.
type record map[string]string

// export reads a CSV back and holds its bytes to what every shape has.
func (f *fixture) export(t *testing.T, query string) (columns []string, records []record) {
	t.Helper()
	got := f.get(t, "/readings.csv"+query)
	require.Equal(t, http.StatusOK, got.status, string(got.body))
	require.True(t, utf8.Valid(got.body))
	require.False(t, bytes.HasPrefix(got.body, []byte("\ufeff")), "no BOM")
	require.True(t, bytes.HasSuffix(got.body, []byte("\n")))
	rows, err := csv.NewReader(bytes.NewReader(got.body)).ReadAll()
	require.NoError(t, err)
	for _, row := range rows[1:] {
		r := record{}
		for i, cell := range row {
			r[rows[0][i]] = cell
		}
		records = append(records, r)
	}
	return rows[0], records
}

func TestNamesInCSVGolden(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 27.2", "decision 27.3", "decision 27.4", "decision 27.8")
	f := setup(t)
	for i, name := range oddNames {
		id := number(0xdf, i)
		f.addDevice(t, teamID, id, fmt.Sprintf("dev:%d", 10+i))
		f.nameDevice(t, id, name)
		f.addReading(t, id, start.Add(-time.Hour), float32(i))
	}
	requireGolden(t, "long_names.csv.golden", f.get(t, "/readings.csv").body)

	_, records := f.export(t, "")
	require.Len(t, records, len(oddNames))
	for i, name := range oddNames {
		if strings.IndexAny(name, "=+-@\t\r") == 0 {
			name = "'" + name
		}
		// The reader itself makes LF of CR LF within quotes.
		require.Equal(t, strings.ReplaceAll(name, "\r\n", "\n"), records[i]["display_name"])
	}
}

// A header row stands there whatever is selected, also of a team that has no device.
func TestHeaderRowAlways(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 27.1", "decision 29.9")
	f := setup(t)
	const long = "bucket_at,device_id,display_name,co2_ppm,temp_c,humidity_pct,lux,spl_db,valid_mask\n"
	const none = "device_de000000.co2_ppm,device_de000000.temp_c,device_de000000.humidity_pct,device_de000000.lux,device_de000000.spl_db\n"
	require.Equal(t, long, string(f.get(t, "/readings.csv").body))
	require.Equal(t, "bucket_at,"+none, string(f.get(t, "/readings.csv?shape=wide").body))
	f.exec(t, `DELETE FROM devices`)
	require.Equal(t, long, string(f.get(t, "/readings.csv?last=90d").body))
	require.Equal(t, "bucket_at\n", string(f.get(t, "/readings.csv?shape=wide").body))
}

// Every cell is the token that the JSON has, and is empty where that is null.
func TestCSVPrintsAsJSON(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 27.5", "decision 27.6")
	f := setup(t)
	f.exec(t, `INSERT INTO readings (device_id, bucket_at, co2_ppm, temp_c, humidity_pct, lux, spl_db) VALUES
		($1, '2026-11-20 09:00Z', 612, 21.4, 40.1, 120, 38.2), ($1, '2026-11-20 09:05Z', 1e-45, 3.4028235e38, -0, 0, NULL),
		($1, '2026-11-20 09:10Z', 'NaN', 'Infinity', '-Infinity', 16777216, 0.1), ($1, '2026-11-20 09:15Z', 1e20, 1e-20, 123456.79, 99999.99, 1),
		($1, '2026-11-20 09:20Z', NULL, NULL, NULL, NULL, NULL)`, deviceID)
	_, records := f.export(t, "")
	_, wide := f.export(t, "?shape=wide")
	page := decode[list[map[string]json.RawMessage]](t, f.get(t, readingsPath)).Data
	require.Len(t, page, 5)
	for i, r := range records {
		for name, token := range page[len(page)-1-i] {
			cell := strings.Replace(strings.Trim(string(token), `"`), "null", "", 1)
			if name == "ingested_at" {
				continue
			}
			require.Equal(t, cell, r[name], name)
			if name != "bucket_at" {
				name = "device_de000000." + name
			}
			require.Equal(t, cell, wide[i][name], name)
		}
	}
}

// All 32 combinations of values that are there.
func TestValidMask(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 28.1", "decision 28.2")
	f := setup(t)
	f.exec(t, `INSERT INTO readings (device_id, bucket_at, co2_ppm, temp_c, humidity_pct, lux, spl_db)
		SELECT $1, $2::timestamptz + i * INTERVAL '5 minutes', CASE WHEN i & 1 > 0 THEN 0 END, CASE WHEN i & 2 > 0 THEN 1 END,
		CASE WHEN i & 4 > 0 THEN 2 END, CASE WHEN i & 8 > 0 THEN 3 END, CASE WHEN i & 16 > 0 THEN 4 END FROM generate_series(0, 31) i`,
		deviceID, start.Add(-5*time.Hour))
	_, records := f.export(t, "")
	require.Len(t, records, 32)
	for i, r := range records {
		mask := 0
		for bit, metric := range []string{"co2_ppm", "temp_c", "humidity_pct", "lux", "spl_db"} {
			if r[metric] != "" {
				mask |= 1 << bit
			}
		}
		require.Equal(t, strconv.Itoa(i), r["valid_mask"])
		require.Equal(t, i, mask)
	}
}

// By bucket first, then by the bytes of the id, whatever the order of the parameter.
func TestOrderOfRows(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 27.7")
	f := setup(t)
	ids := []uuid.UUID{number(0x0a, 1), number(0x9f, 2), deviceID, number(0xff, 1)}
	var named []string
	for i, id := range ids {
		if id != deviceID {
			f.addDevice(t, teamID, id, fmt.Sprintf("dev:%d", 10+i))
		}
		f.addReadings(t, id, start.Add(-2*time.Hour), 20)
		named = append([]string{strings.ToUpper(id.String())}, named...)
	}
	for _, query := range []string{"", "?devices=" + strings.Join(named, ",")} {
		_, records := f.export(t, query)
		require.Len(t, records, 80)
		for i, r := range records {
			require.Equal(t, ids[i%4].String(), r["device_id"])
			require.Equal(t, start.Add(-2*time.Hour+time.Duration(i/4)*5*time.Minute).Format(time.RFC3339), r["bucket_at"])
		}
	}
}
