package export_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"

	"roomsensor/client"
	"roomsensor/client/export"
	"roomsensor/test/apitest"
	"roomsensor/test/conformance"
	"roomsensor/test/harness"
)

func TestRun(t *testing.T) {
	t.Parallel()
	a := apitest.Start(t)
	devices := a.AddDevices(t, 4)
	a.AddReadings(t, devices, start, 200, 2*day) // 400 days, in windows of 90 days.
	a.Exec(t, `UPDATE devices SET display_name = E'=Attic, "A"' WHERE id = $1`, devices[0])
	a.Exec(t, `UPDATE devices SET metadata = '{"floor":"2"}' WHERE id = ANY ($1)`, devices[1:3])
	a.Exec(t, `UPDATE devices SET retired_at = now() WHERE id = $1`, devices[1])
	for i, room := range []uuid.UUID{devices[0], devices[3], devices[0]} { // An athlete who moved, and came back.
		a.Exec(t, `INSERT INTO assignments (device_id, type, label, external_ref, started_at, ended_at)
			VALUES ($1, 'athlete', 'Ana', 'crm-7', $2, $3)`, room, start.Add(time.Duration(i)*100*day), start.Add(time.Duration(i)*100*day+90*day))
	}
	c := connect(t, a.URL, a.Key)
	year := []time.Duration{90 * day, 90 * day, 90 * day, 90 * day, 40 * day}
	floor := map[string]string{"floor": "2"}
	co2 := []client.Metric{client.SPLDB, client.CO2PPM}
	for name, test := range map[string]struct {
		change func(r *export.Request)
		want   client.ExportQuery
	}{
		"all devices":       {func(*export.Request) {}, client.ExportQuery{}},
		"named":             {func(r *export.Request) { r.Devices = []uuid.UUID{devices[3], devices[0], devices[3]} }, client.ExportQuery{Devices: []uuid.UUID{devices[0], devices[3]}}},
		"with a tag":        {func(r *export.Request) { r.Metadata = floor }, client.ExportQuery{Metadata: floor}},
		"named with a tag":  {func(r *export.Request) { r.Metadata, r.Devices = floor, devices[2:] }, client.ExportQuery{Devices: devices[2:3]}},
		"metrics":           {func(r *export.Request) { r.Metrics = co2 }, client.ExportQuery{Metrics: co2}},
		"ingested_at":       {func(r *export.Request) { r.IngestedAt = true }, client.ExportQuery{IngestedAt: true}},
		"of a person":       {func(r *export.Request) { r.ExternalRef = "crm-7" }, client.ExportQuery{ExternalRef: "crm-7"}},
		"wide":              {func(r *export.Request) { r.Wide = true }, client.ExportQuery{Shape: client.Wide}},
		"wide, two devices": {func(r *export.Request) { r.Wide, r.Devices = true, devices[:2] }, client.ExportQuery{Shape: client.Wide, Devices: devices[:2]}},
		"wide, columns after ids": {
			func(r *export.Request) { r.Wide, r.ColumnIDs, r.Metrics = true, true, co2 },
			client.ExportQuery{Shape: client.Wide, ColumnIDs: true, Metrics: co2},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := request(400)
			test.change(&r)
			result, text := run(t, c, r, output(t))
			require.Equal(t, whole(t, a, test.want, year...), text)
			require.False(t, result.Resumed)
		})
	}
	t.Run("up to now", func(t *testing.T) {
		t.Parallel()
		now := func() time.Time { return start.Add(400*day + time.Millisecond) }
		o := output(t)
		o.Now = now
		r := export.Request{Last: 400 * day, Format: export.CSV}
		result, text := run(t, c, r, o)
		require.Equal(t, whole(t, a, client.ExportQuery{}, year...), text)
		require.Equal(t, start, result.From)
	})
	t.Run("by month", func(t *testing.T) {
		t.Parallel()
		o := export.Options{Output: t.TempDir()}
		r := request(59 + 15) // January, February and half of March.
		r.ByMonth = true
		result, _ := run(t, c, r, o)
		require.Len(t, result.Files, 3)
		for i, length := range []time.Duration{31 * day, 28 * day, 15 * day} {
			path := filepath.Join(o.Output, fmt.Sprintf("readings_2025-%02d.csv", i+1))
			require.Equal(t, path, result.Files[i].Path)
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, wholeFrom(t, a, start.AddDate(0, i, 0), client.ExportQuery{}, length), string(text))
		}
		entries, err := os.ReadDir(o.Output)
		require.NoError(t, err)
		require.Len(t, entries, 6, "each with its request")
	})
}

// TestCheck compares files with the service before and after a reading of one day and device is stored late.
func TestCheck(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "A21.2")
	a := apitest.Start(t)
	devices := a.AddDevices(t, 2)
	a.AddReadings(t, devices, start, 100, 2*day)
	c := connect(t, a.URL, a.Key)
	o, byMonth := output(t), export.Options{Output: t.TempDir()}
	_, _ = run(t, c, request(200), o)
	months := request(59)
	months.ByMonth, months.Format = true, export.Parquet
	_, err := export.Run(t.Context(), c, months, byMonth)
	require.NoError(t, err)
	check := func(path string) *export.Comparison {
		t.Helper()
		got, err := export.Check(t.Context(), c, path)
		require.NoError(t, err)
		return got
	}
	january, february := byMonth.Output+"/readings_2025-01.parquet", byMonth.Output+"/readings_2025-02.parquet"
	for _, path := range []string{o.Output, january, february} {
		require.True(t, check(path).Exact, path)
	}

	a.AddReadings(t, devices[1:], start.Add(day), 1, time.Hour)
	changed := []export.Day{{DeviceID: devices[1], Day: "2025-01-02", Readings: 1}}
	got := check(o.Output)
	require.Equal(t, []export.Span{{From: start, To: start.Add(90 * day)}}, got.Changed)
	require.Equal(t, changed, got.Days)
	require.Equal(t, changed, check(january).Days)
	require.True(t, check(february).Exact)
	asked := &export.Request{From: new(start), To: new(start.Add(200 * day)), Format: export.CSV}
	same, err := export.IsOf(o.Output, asked)
	require.NoError(t, err)
	require.True(t, same)
	require.NoError(t, os.Mkdir(o.Output+".partial", 0o700))
	require.NoError(t, os.WriteFile(o.Output+".partial/journal.jsonl", nil, 0o600))
	same, err = export.IsOf(o.Output, asked)
	require.NoError(t, err)
	require.False(t, same, "a run is unfinished")

	require.NoError(t, os.WriteFile(o.Output, []byte("edited"), 0o600))
	_, err = export.Check(t.Context(), c, o.Output)
	require.ErrorContains(t, err, "was changed after it was exported")
	require.NoError(t, os.WriteFile(export.RecordPath(o.Output), []byte("{}"), 0o600))
	_, err = export.Check(t.Context(), c, o.Output)
	require.ErrorContains(t, err, "not one that this version")
}

// A window with more readings than the limit is divided until its parts fit.
func TestRunDivides(t *testing.T) {
	t.Parallel()
	a := apitest.Start(t)
	devices := a.AddDevices(t, 200) // So many that the first request asks for 90 days.
	a.AddReadings(t, devices, start.Add(40*day), 1300, 5*time.Minute)
	var parts []int
	o := output(t)
	o.Progress = func(s export.Status) { parts = append(parts, s.Parts) }
	result, text := run(t, connect(t, a.URL, a.Key), request(60), o)
	require.EqualValues(t, 260_000, result.Rows)
	require.Equal(t, 1, parts[0])
	require.Greater(t, parts[len(parts)-1], 2)
	require.Equal(t, whole(t, a, client.ExportQuery{}, 41*day, 19*day), text)
}

// More devices than one request may name are merged in the order of one response.
func TestRunManyNamed(t *testing.T) {
	t.Parallel()
	a := apitest.Start(t)
	devices := a.AddDevices(t, 1030)
	a.AddReadings(t, devices, start, 30, 5*time.Minute)
	a.AddReadings(t, devices[:7], start.Add(day), 30, 5*time.Minute)
	a.Exec(t, `UPDATE devices SET display_name = E'a "quoted", name' WHERE id = ANY ($1)`, devices[990:1020])
	r := request(2)
	r.Devices = devices
	_, text := run(t, connect(t, a.URL, a.Key), r, output(t))
	require.Equal(t, whole(t, a, client.ExportQuery{}, 2*day), text)

	// A Parquet file does not depend on how the request was divided.
	r.Format = export.Parquet
	_, named := runParquet(t, connect(t, a.URL, a.Key), r)
	r.Devices = nil
	result, all := runParquet(t, connect(t, a.URL, a.Key), r)
	require.EqualValues(t, 30*1037, result.Rows)
	require.Equal(t, sha256.Sum256(all), sha256.Sum256(named))
}

// runParquet runs an export in Parquet and returns the file.
func runParquet(t *testing.T, c *client.Client, r export.Request) (result *export.Result, text []byte) {
	t.Helper()
	r.Format = export.Parquet
	o := output(t)
	result, err := export.Run(t.Context(), c, r, o)
	require.NoError(t, err)
	text, err = os.ReadFile(o.Output)
	require.NoError(t, err)
	sum := sha256.Sum256(text)
	require.Equal(t, hex.EncodeToString(sum[:]), result.Files[0].SHA256)
	return result, text
}

// The rows of a Parquet file are those of the CSV.
func TestRunParquet(t *testing.T) {
	t.Parallel()
	a := apitest.Start(t)
	devices := a.AddDevices(t, 3)
	a.AddReadings(t, devices, start, 200, 2*day)
	a.Exec(t, `UPDATE devices SET display_name = NULL WHERE id = $1`, devices[0])
	c := connect(t, a.URL, a.Key)
	_, csv := run(t, c, request(400), output(t))
	_, text := runParquet(t, c, request(400))
	type row struct {
		BucketAt int64    `parquet:"bucket_at,timestamp(microsecond)"`
		DeviceID string   `parquet:"device_id"`
		Name     *string  `parquet:"display_name,optional"`
		CO2      *float32 `parquet:"co2_ppm,optional"`
		Temp     *float32 `parquet:"temp_c,optional"`
		Humidity *float32 `parquet:"humidity_pct,optional"`
		Lux      *float32 `parquet:"lux,optional"`
		Sound    *float32 `parquet:"spl_db,optional"`
		Mask     int32    `parquet:"valid_mask"`
	}
	rows, err := parquet.Read[row](bytes.NewReader(text), int64(len(text)))
	require.NoError(t, err)
	lines := []string{strings.SplitAfterN(csv, "\n", 2)[0]}
	for _, r := range rows {
		line := time.UnixMicro(r.BucketAt).UTC().Format(time.RFC3339) + "," + r.DeviceID + ","
		if r.Name != nil {
			line += *r.Name
		}
		for _, x := range []*float32{r.CO2, r.Temp, r.Humidity, r.Lux, r.Sound} {
			line += ","
			if x != nil {
				line += fmt.Sprint(*x)
			}
		}
		lines = append(lines, fmt.Sprintf("%s,%d\n", line, r.Mask))
	}
	require.Equal(t, csv, strings.Join(lines, ""))

	// It goes on after an interruption, and has the same bytes.
	o := output(t)
	r := request(400)
	r.Format = export.Parquet
	interrupt(t, a, r, o)
	result, err := export.Run(t.Context(), c, r, o)
	require.NoError(t, err)
	require.True(t, result.Resumed)
	again, err := os.ReadFile(o.Output)
	require.NoError(t, err)
	require.Equal(t, sha256.Sum256(text), sha256.Sum256(again))

	// Without readings, it is a valid file.
	none := request(1)
	none.From, none.To = new(start.Add(-day)), new(start)
	_, text = runParquet(t, c, none)
	rows, err = parquet.Read[row](bytes.NewReader(text), int64(len(text)))
	require.NoError(t, err)
	require.Empty(t, rows)
}

// broken sends the beginning of an export and breaks the connection.
func broken(w http.ResponseWriter) {
	w.Header().Set("X-Row-Count", "2")
	_, _ = w.Write([]byte("bucket_at,device_id\n2025-01-01T00:00:00Z,x\n"))
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

// An export goes on after every failure that passes.
func TestRunRetries(t *testing.T) {
	t.Parallel()
	a := apitest.Start(t)
	a.AddReadings(t, a.AddDevices(t, 2), start, 180, 2*day)
	var failed atomic.Int64
	url := apitest.Proxy(t, a.URL, func(n int64, w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, ".csv") || n > 8 {
			return false
		}
		switch failed.Add(1) {
		case 1:
			apitest.Fail(w, http.StatusTooManyRequests, "rate_limit_exceeded")
		case 2:
			apitest.Fail(w, http.StatusServiceUnavailable, "overloaded")
		case 3:
			broken(w)
		case 4: // Complete, but not the announced number of rows.
			w.Header().Set("X-Row-Count", "3")
			_, _ = w.Write([]byte("bucket_at,device_id\n2025-01-01T00:00:00Z,x\n"))
		default:
			panic(http.ErrAbortHandler)
		}
		return true
	})
	var problems atomic.Int64
	o := output(t)
	o.Progress = func(s export.Status) {
		if s.Problem != nil {
			problems.Add(1)
		}
	}
	_, text := run(t, connect(t, url, a.Key), request(360), o)
	require.Equal(t, whole(t, a, client.ExportQuery{}, 90*day, 90*day, 90*day, 90*day), text)
	require.GreaterOrEqual(t, failed.Load(), int64(5))
	require.GreaterOrEqual(t, problems.Load(), int64(4), "the HTTP client repeats requests without any response itself")
}

func TestRunGivesUp(t *testing.T) {
	t.Parallel()
	a := apitest.Start(t)
	a.AddDevices(t, 1)
	refusing := func(status int, code string) string {
		return apitest.Proxy(t, a.URL, func(_ int64, w http.ResponseWriter, r *http.Request) bool {
			if strings.HasSuffix(r.URL.Path, ".csv") {
				apitest.Fail(w, status, code)
				return true
			}
			return false
		})
	}
	_, err := export.Run(t.Context(), connect(t, refusing(http.StatusNotFound, "device_not_found"), a.Key), request(1), output(t))
	require.True(t, client.HasCode(err, client.CodeDeviceNotFound), err)
	require.ErrorContains(t, err, "exporting 2025-01-01T00:00:00Z to 2025-01-02T00:00:00Z: ")
	o := output(t)
	o.Patience = time.Nanosecond
	_, err = export.Run(t.Context(), connect(t, refusing(http.StatusServiceUnavailable, "overloaded"), a.Key), request(1), o)
	require.ErrorContains(t, err, "no request succeeded for 1ns")
	o = output(t)
	_, err = export.Run(t.Context(), connect(t, a.URL, "rsk_x_y"), request(1), o)
	require.True(t, client.HasCode(err, "api_key_invalid"), err)
	require.NoDirExists(t, o.Output+".partial")
}

// An export that is interrupted after every part continues, and has the bytes of an undisturbed one.
func TestRunResumes(t *testing.T) {
	t.Parallel()
	a := apitest.Start(t)
	a.AddReadings(t, a.AddDevices(t, 3), start, 300, 3*day)
	want := whole(t, a, client.ExportQuery{}, 90*day, 90*day, 90*day, 90*day, 90*day, 90*day, 90*day, 90*day, 90*day, 90*day)
	c := connect(t, a.URL, a.Key)
	for parallel := 1; parallel <= 3; parallel++ {
		t.Run(fmt.Sprintf("%d at once", parallel), func(t *testing.T) {
			t.Parallel()
			o := output(t)
			o.Parallel = parallel
			runs := 0
			for done := false; !done; runs++ {
				ctx, cancel := context.WithCancel(t.Context())
				before := -1
				o.Progress = func(s export.Status) {
					if before < 0 {
						before = s.Done
					}
					if s.Done > before && s.Done < s.Parts {
						cancel()
					}
				}
				result, err := export.Run(ctx, c, request(900), o)
				cancel()
				if err != nil {
					require.ErrorIs(t, err, context.Canceled)
					require.NoFileExists(t, o.Output)
					continue
				}
				done = true
				require.True(t, result.Resumed)
			}
			require.GreaterOrEqual(t, runs, 10/parallel)
			text, err := os.ReadFile(o.Output)
			require.NoError(t, err)
			require.Equal(t, want, string(text))
			require.NoDirExists(t, o.Output+".partial")
		})
	}
}

// interrupt leaves an export of 180 days with one of two parts.
func interrupt(t *testing.T, a *apitest.Service, r export.Request, o export.Options) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	o.Parallel = 1
	o.Progress = func(s export.Status) {
		if s.Done == 1 {
			cancel()
		}
	}
	_, err := export.Run(ctx, connect(t, a.URL, a.Key), r, o)
	require.ErrorIs(t, err, context.Canceled)
}

// An interrupted export of something else is neither continued nor overwritten.
func TestRunRefuses(t *testing.T) {
	t.Parallel()
	a := apitest.Start(t)
	devices := a.AddDevices(t, 2)
	a.AddReadings(t, devices, start, 180, day)
	c := connect(t, a.URL, a.Key)
	o := output(t)
	interrupt(t, a, request(180), o)
	other := request(180)
	other.Wide, other.Devices = true, devices[:1]
	_, err := export.Run(t.Context(), c, other, o)
	require.ErrorContains(t, err, "with another value of devices, shape. Repeat that request, or set Restart")

	team, err := harness.InsertTeam(t.Context(), a.SQL, "Other", nil)
	require.NoError(t, err)
	keys, err := harness.InsertAPIKeys(t.Context(), a.SQL, team, 1)
	require.NoError(t, err)
	_, err = export.Run(t.Context(), connect(t, a.URL, keys[0]), request(180), o)
	require.ErrorContains(t, err, "of another team")

	restarted := o
	restarted.Restart = true
	_, text := run(t, c, other, restarted)
	require.Equal(t, whole(t, a, client.ExportQuery{Devices: devices[:1], Shape: client.Wide}, 90*day, 90*day), text)

	_, err = export.Run(t.Context(), c, request(180), o)
	require.ErrorContains(t, err, "readings.csv exists")
	o.Overwrite = true
	_, text = run(t, c, request(180), o)
	require.Equal(t, whole(t, a, client.ExportQuery{}, 90*day, 90*day), text)
}

// What a crash wrote in part is discarded.
func TestRunCrash(t *testing.T) {
	t.Parallel()
	a := apitest.Start(t)
	a.AddReadings(t, a.AddDevices(t, 2), start, 360, day)
	want := whole(t, a, client.ExportQuery{}, 90*day, 90*day, 90*day, 90*day)
	c := connect(t, a.URL, a.Key)

	o := output(t)
	interrupt(t, a, request(360), o)
	for name, text := range map[string]string{"journal.jsonl": `{"part":{"from":"2025`, "joined-0": "2025-04"} {
		file, err := os.OpenFile(filepath.Join(o.Output+".partial", name), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		require.NoError(t, err)
		_, err = file.WriteString(text) // What a crash cut off.
		require.NoError(t, err)
		require.NoError(t, file.Close())
	}
	_, got := run(t, c, request(360), o)
	require.Equal(t, want, got)
}

// A full disk ends the export with an error of the system, and keeps what was downloaded.
func TestRunDiskFull(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("needs /dev/full")
	}
	a := apitest.Start(t)
	a.AddReadings(t, a.AddDevices(t, 2), start, 180, day)
	c := connect(t, a.URL, a.Key)
	o := output(t)
	interrupt(t, a, request(180), o)
	full := filepath.Join(o.Output+".partial", "20250401T000000.000000-0.part.new")
	require.NoError(t, os.Symlink("/dev/full", full))
	_, err := export.Run(t.Context(), c, request(180), o)
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.NoFileExists(t, full)
	result, got := run(t, c, request(180), o)
	require.True(t, result.Resumed)
	require.Equal(t, whole(t, a, client.ExportQuery{}, 90*day, 90*day), got)
}

// The columns of the wide shape follow names: a rename during the export is reported.
func TestRunRename(t *testing.T) {
	t.Parallel()
	a := apitest.Start(t)
	devices := a.AddDevices(t, 2)
	a.AddReadings(t, devices, start, 180, day)
	o := output(t)
	r := request(180)
	r.Wide = true
	interrupt(t, a, r, o)
	a.Exec(t, `UPDATE devices SET display_name = 'Hall' WHERE id = $1`, devices[0])
	_, err := export.Run(t.Context(), connect(t, a.URL, a.Key), r, o)
	require.ErrorContains(t, err, "The columns changed before the part from 2025-04-01T00:00:00Z on")
}

func TestRequest(t *testing.T) {
	t.Parallel()
	at := new(start)
	wide := export.Request{Last: day, Format: export.Parquet, Wide: true}
	for want, r := range map[string]export.Request{
		"needs a window":          {Format: export.CSV},
		"start and end, not both": {Last: day, From: at, Format: export.CSV},
		"must be later":           {From: at, To: at, Format: export.CSV},
		"format must be":          {From: at},
		"long shape only":         wide,
	} {
		_, err := export.Run(t.Context(), connect(t, "http://127.0.0.1:1", "x"), r, output(t))
		require.ErrorContains(t, err, want)
		require.ErrorAs(t, err, new(export.RequestError))
	}
}
