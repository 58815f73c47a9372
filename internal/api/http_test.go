package api_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"roomsensor/test/conformance"
)

// Bodies are JSON, but for the exports. HEAD returns the status and headers of GET, without a body (decision 42 a).
func TestHead(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 42 a", "decision 32 d", "spec 1, bodies")
	f := setup(t)
	f.addReadings(t, deviceID, start.Add(-12*time.Hour), 100)
	for _, path := range append(readEndpoints(), "/devices/"+unknownID, "/devices?limit=0", "/readings.csv?shape=tall", "/nothing") {
		for _, coding := range []string{"identity", "gzip", "zstd"} {
			get := f.get(t, path, header("Accept-Encoding", coding))
			head := f.head(t, path, header("Accept-Encoding", coding))
			require.Equal(t, get.status, head.status, path)
			require.Empty(t, head.body)
			switch name, _, _ := strings.Cut(path, "?"); {
			case get.status == http.StatusOK && isCSV(path):
				require.Equal(t, "text/csv; charset=utf-8", get.header.Get("Content-Type"))
			case get.status == http.StatusOK && name == "/readings.parquet":
				require.Equal(t, "application/vnd.apache.parquet", get.header.Get("Content-Type"))
			default:
				require.Equal(t, "application/json; charset=utf-8", get.header.Get("Content-Type"))
				require.True(t, coding != "identity" || json.Valid(get.body), string(get.body))
			}
			for _, volatile := range []string{"X-Request-Id", "Ratelimit-Remaining", "Ratelimit-Reset", "Date"} {
				get.header.Del(volatile)
				head.header.Del(volatile)
			}
			require.Equal(t, get.header, head.header, path)
		}
	}
}

// isCSV reports whether a path is one of an export.
func isCSV(path string) bool {
	path, _, _ = strings.Cut(path, "?")
	return strings.HasSuffix(path, ".csv")
}

func TestETag(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 42 b", "decision 42 c")
	f := setup(t)
	for _, path := range []string{"/team", "/devices", "/devices/current", devicePath, readingsPath, aggregatesPath + "?interval=1d"} {
		tag := f.get(t, path).header.Get("ETag")
		require.Regexp(t, `^W/"[a-z0-9]{1,13}"$`, tag)
		require.Equal(t, tag, f.get(t, path, header("Accept-Encoding", "gzip")).header.Get("ETag"), "of the uncompressed body")
		for value, status := range map[string]int{
			tag: 304, "*": 304, strings.TrimPrefix(tag, "W/"): 304, `"x", ` + tag + `, "y"`: 304,
			`"x"`: 200, "": 200, "x": 200, tag[:len(tag)-2] + `"`: 200,
		} {
			got := f.get(t, path, header("If-None-Match", value))
			require.Equal(t, status, got.status, "%s %s", path, value)
			require.Equal(t, tag, got.header.Get("ETag"))
			require.Equal(t, "600", got.header.Get("RateLimit-Limit"))
			if status == http.StatusNotModified {
				require.Empty(t, got.body)
				require.Empty(t, got.header.Get("Content-Type"))
			}
		}
	}
	tag := f.get(t, devicePath).header.Get("ETag")
	f.nameDevice(t, deviceID, "Other")
	f.get(t, devicePath, header("If-None-Match", tag)).requireOK(t)
	f.patch(t, `{"metadata":{}}`, header("If-None-Match", "*")).requireOK(t)
}

// The tag of a page with a next page ignores the cursor, which is new each time (decision 49).
func TestETagOfPages(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.fillLists(t, 3)
	for path, all := range lists {
		url := path + "?limit=1&" + all
		first := f.get(t, url)
		tag := first.header.Get("ETag")
		conformance.Covers(t, "decision 49 a", "decision 42 c")
		again := f.get(t, url)
		require.Equal(t, tag, again.header.Get("ETag"), path)
		require.NotEqual(t, string(first.body), string(again.body), "each page has a cursor of its own")
		require.Equal(t, tag, f.serve(t, f.store, nil).get(t, url, f.key).header.Get("ETag"), "of another replica")
		require.Equal(t, http.StatusNotModified, f.get(t, url, header("If-None-Match", tag)).status)
		require.NotEqual(t, tag, f.get(t, path+"?limit=2&"+all).header.Get("ETag"), "other items")

		conformance.Covers(t, "decision 49 c")
		f.get(t, url, header("If-None-Match", tag), withKey(f.readKey)).requireOK(t)
	}

	last := f.get(t, "/devices?limit=3").header.Get("ETag") // Without a next page, until there is one.
	f.addDevice(t, teamID, testID(0xff, 1), "dev:9999")
	f.get(t, "/devices?limit=3", header("If-None-Match", last)).requireOK(t)
	tag := f.get(t, "/devices?limit=1").header.Get("ETag")
	f.exec(t, `UPDATE devices SET display_name = 'New'`)
	f.get(t, "/devices?limit=1", header("If-None-Match", tag)).requireOK(t)
}

// A client that asks again and again, and is always answered 304, has a cursor that is still valid.
func TestETagOfPagesChanges(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 49 b")
	f := setup(t)
	f.fillLists(t, 3)
	for path, all := range lists {
		url := path + "?limit=1&" + all
		kept := f.get(t, url)
		for range 30 {
			f.clock.advance(time.Hour)
			cursor := decode[list[item]](t, kept).NextCursor
			f.get(t, path+"?cursor="+*cursor).requireOK(t)
			if got := f.get(t, url, header("If-None-Match", kept.header.Get("ETag"))); got.status == http.StatusOK {
				kept = got
			}
		}
	}
	tag := f.get(t, "/devices?limit=1").header.Get("ETag")
	f.clock.advance(12 * time.Hour)
	f.get(t, "/devices?limit=1", header("If-None-Match", tag)).requireOK(t)
}

// expand decompresses a body.
func expand(t *testing.T, coding string, body io.Reader) ([]byte, error) {
	t.Helper()
	switch coding {
	case "gzip":
		r, err := gzip.NewReader(body)
		if err != nil {
			return nil, fmt.Errorf("opening gzip: %w", err)
		}
		body = r
	case "zstd":
		r, err := zstd.NewReader(body)
		require.NoError(t, err)
		defer r.Close()
		body = r
	}
	text, err := io.ReadAll(body)
	if err != nil {
		return text, fmt.Errorf("expanding: %w", err)
	}
	return text, nil
}

// Lists and exports are compressed on request. Both always have Vary, 304 and HEAD included (decision 33).
func TestCompression(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 33 a 1", "decision 33 a 2", "decision 33 b", "decision 32 b", "decision 32 d")
	f := setup(t)
	f.addReadings(t, deviceID, start.Add(-20*time.Hour), 200)
	f.addAssignment(t, deviceID, testID(0xa5, 1), start.Add(-2*time.Hour), nil)
	for path, compresses := range map[string]bool{
		"/devices": true, "/devices?metadata.a=b": true, "/devices/current": true, assignmentsPath: true, readingsPath: true,
		readingsPath + "?last=1m": true, "/readings.csv": true, "/readings.csv?shape=wide": true, "/readings.csv?last=1m": true,
		devicePath: false, "/team": false, "/devices?x=1": false, "/readings.csv?x=1": false,
		aggregatesPath + "?interval=1h": true, "/aggregates.csv?interval=1h": true, "/aggregates.csv?interval=1d&fill=true": true,
	} {
		plain := f.get(t, path)
		for _, coding := range []string{"", "identity", "gzip", "zstd", "br", "gzip;q=0", "*;q=0"} {
			accept := header("Accept-Encoding", coding)
			got, head := f.get(t, path, accept), f.head(t, path, accept)
			want, vary := "", []string(nil)
			if compresses {
				vary = []string{"Accept-Encoding"}
				if coding == "gzip" || coding == "zstd" {
					want = coding
				}
			}
			require.Equal(t, want, got.header.Get("Content-Encoding"), "%s %s", path, coding)
			require.Equal(t, vary, got.header.Values("Vary"))
			require.Equal(t, vary, head.header.Values("Vary"))
			require.Equal(t, got.header.Get("X-Row-Count"), head.header.Get("X-Row-Count"))
			body, err := expand(t, want, bytes.NewReader(got.body))
			require.NoError(t, err)
			if got.status == http.StatusOK {
				require.Equal(t, string(plain.body), string(body))
			}
			if got.header.Get("ETag") != "" {
				unchanged := f.get(t, path, accept, header("If-None-Match", "*"))
				require.Equal(t, http.StatusNotModified, unchanged.status)
				require.Equal(t, vary, unchanged.header.Values("Vary"))
			} else if got.status == http.StatusOK {
				require.Equal(t, got.header.Get("X-Row-Count"), strconv.Itoa(bytes.Count(body, []byte("\n"))-1))
			}
		}
	}
}

// Every time of every response is RFC 3339 in UTC with Z, whatever the time zone of the database (decision 1).
func TestPrintedTimes(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 1 a", "decision 1 b", "spec 1, conventions, rule 1, returned")
	f := setup(t)
	f.addAssignment(t, deviceID, testID(0xa5, 1), start.Add(-time.Hour), nil)
	f.addReading(t, deviceID, start.Add(-time.Hour), 1)
	for stored, want := range map[string]string{
		"2026-11-20 09:00:00+00":              "2026-11-20T09:00:00Z",
		"2026-11-20 09:00:00.000001+00":       "2026-11-20T09:00:00.000001Z",
		"2026-11-20 09:00:00.120300+00":       "2026-11-20T09:00:00.1203Z",
		"2026-11-20 00:30:00+13":              "2026-11-19T11:30:00Z",
		"2026-11-19 23:59:59.25-09:30":        "2026-11-20T09:29:59.25Z",
		"0999-01-02 03:04:05 UTC":             "0999-01-02T03:04:05Z",
		"2026-10-25 02:30:00.1 Europe/Berlin": "2026-10-25T01:30:00.1Z",
	} {
		f.exec(t, `UPDATE device_state SET last_seen_at = $1::text::timestamptz`, stored)
		f.exec(t, `UPDATE assignments SET started_at = $1::text::timestamptz, ended_at = NULL`, stored)
		f.exec(t, `UPDATE readings SET ingested_at = $1::text::timestamptz`, stored)
		for _, body := range f.deviceBodies(t) {
			require.Contains(t, body, `"last_seen_at":"`+want+`"`)
			require.Contains(t, body, `"started_at":"`+want+`"`)
		}
		require.Contains(t, string(f.get(t, "/devices/current").body), `"ingested_at":"`+want+`"`)
		require.Contains(t, string(f.get(t, readingsPath).body), `"ingested_at":"`+want+`"`)
		f.exec(t, `UPDATE assignments SET ended_at = started_at, started_at = started_at - INTERVAL '1 day'`)
		require.Contains(t, string(f.get(t, assignmentsPath).body), `"ended_at":"`+want+`"`)
	}
	utc := regexp.MustCompile(`^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{1,6})?Z$`)
	times := regexp.MustCompile(`"(\w+_at|from|to)":"([^"]*)"`)
	f.exec(t, `DELETE FROM assignments`)
	f.addAssignment(t, deviceID, testID(0xa5, 2), start.Add(-12*time.Hour), new(start.Add(-time.Hour))) // At night.
	seen := map[string]bool{}
	for _, path := range readEndpoints() {
		if isCSV(path) {
			column := 0
			if strings.HasPrefix(path, "/nights") {
				column = 1 // After the date of the night.
			}
			require.Regexp(t, utc, f.get(t, path).records(t)[1][column], path)
		}
		for _, match := range times.FindAllStringSubmatch(string(f.get(t, path).body), -1) {
			require.Regexp(t, utc, match[2], "%s %s", path, match[1])
			seen[match[1]] = true
		}
	}
	require.Len(t, seen, 9, "last_seen_at, started_at, ended_at, bucket_at, ingested_at, from, to, first_bucket_at, last_bucket_at")
}
