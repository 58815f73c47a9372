package export_test

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/client"
	"roomsensor/client/export"
	"roomsensor/test/apitest"
	"roomsensor/test/dbtest"
)

func TestMain(m *testing.M) { dbtest.Verify(m) }

const day = 24 * time.Hour

// start is the start of all windows. Readings may be older than a day, but not from the future.
var start = time.Date(2025, time.January, 1, 0, 0, 0, 0, time.UTC)

// connect returns a client of an API that sends each request once: the export itself retries.
func connect(t *testing.T, url, key string) *client.Client {
	t.Helper()
	c, err := client.New(url, key, client.WithMaxAttempts(1))
	require.NoError(t, err)
	return c
}

// request is an export of a number of days.
func request(days int) export.Request {
	return export.Request{From: new(start), To: new(start.Add(time.Duration(days) * day)), Format: export.CSV}
}

// output returns a path in a new directory.
func output(t *testing.T) export.Options {
	t.Helper()
	return export.Options{Output: filepath.Join(t.TempDir(), "readings.csv")}
}

// whole returns the CSV of the API for windows of consecutive lengths from start on, with one header row.
func whole(t *testing.T, a *apitest.Service, q client.ExportQuery, lengths ...time.Duration) string {
	t.Helper()
	return wholeFrom(t, a, start, q, lengths...)
}

func wholeFrom(t *testing.T, a *apitest.Service, from time.Time, q client.ExportQuery, lengths ...time.Duration) string {
	t.Helper()
	c, err := client.New(a.URL, a.Key, client.WithMaxAttempts(100)) // Exports of other tests take the team's turns.
	require.NoError(t, err)
	var text strings.Builder
	for i, length := range lengths {
		q.Window = client.Between(from, from.Add(length))
		body, err := c.ExportCSV(t.Context(), q)
		require.NoError(t, err)
		part, err := io.ReadAll(body)
		require.NoError(t, err)
		require.NoError(t, body.Close())
		header, rows, _ := strings.Cut(string(part), "\n")
		if i == 0 {
			text.WriteString(header + "\n")
		}
		text.WriteString(rows)
		from = from.Add(length)
	}
	return text.String()
}

// run runs an export that must succeed, and checks the file against the result.
func run(t *testing.T, c *client.Client, r export.Request, o export.Options) (result *export.Result, text string) {
	t.Helper()
	result, err := export.Run(t.Context(), c, r, o)
	require.NoError(t, err)
	require.NoDirExists(t, o.Output+".partial")
	for _, f := range result.Files {
		file, err := os.ReadFile(f.Path)
		require.NoError(t, err)
		sum := sha256.Sum256(file)
		require.Equal(t, hex.EncodeToString(sum[:]), f.SHA256)
		require.EqualValues(t, len(file), f.Bytes)
		require.EqualValues(t, strings.Count(string(file), "\n")-1, f.Rows)
		text += string(file)
	}
	return result, text
}
