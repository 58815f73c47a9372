package api_test

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/test/conformance"
)

// TestConditionalExports checks that a tag belongs to the bytes of a body: a client that has them gets 304, until a
// reading, a name or an assignment changes what the export has, and not when something else changes.
func TestConditionalExports(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "A21.1")
	f := setup(t)
	f.addPeople(t)
	f.addReadings(t, deviceID, start.Add(-20*time.Hour), 200)
	const co2, assigned = "/aggregates.csv?interval=1h&metrics=co2_ppm", "/readings.csv?include=assignment"
	paths := []string{
		co2, assigned, "/readings.csv?shape=wide&excel=comma", "/readings.parquet?", "/aggregates.csv?interval=1d&fill=true", "/nights.csv?",
	}
	tags := map[string]string{}
	for _, path := range paths {
		plain := f.get(t, path).requireOK(t)
		require.Empty(t, plain.header.Values("ETag"), path)
		tags[path] = fmt.Sprintf(`W/"%x"`, sha256.Sum256(plain.body))
		got := f.get(t, path, header("If-None-Match", `""`)).requireOK(t)
		require.Equal(t, []any{tags[path], plain.body}, []any{got.header.Get("ETag"), got.body}, path)
		require.Equal(t, plain.header.Get("X-Row-Count"), got.header.Get("X-Row-Count"), path)
	}
	// requireChanged requires that the exports with some paths have other tags, and the others 304.
	requireChanged := func(changed ...string) {
		t.Helper()
		isChanged := map[string]bool{}
		for _, path := range changed {
			isChanged[path] = true
		}
		for _, path := range paths {
			known := header("If-None-Match", `"x", `+tags[path])
			head, got := f.do(t, http.MethodHead, path, "", known), f.get(t, path, known)
			require.Equal(t, head.status, got.status, path)
			if !isChanged[path] {
				require.Equal(t, http.StatusNotModified, got.status, path)
				require.Empty(t, got.body, path)
			} else {
				got.requireOK(t)
				require.Equal(t, fmt.Sprintf(`W/"%x"`, sha256.Sum256(got.body)), got.header.Get("ETag"), path)
				require.NotEqual(t, tags[path], got.header.Get("ETag"), path)
				tags[path] = got.header.Get("ETag")
			}
			require.Equal(t, tags[path], head.header.Get("ETag"), path)
		}
	}
	requireChanged()
	f.exec(t, "UPDATE readings SET lux = 7 WHERE bucket_at = $1", start.Add(-6*time.Hour))
	requireChanged(paths[1:]...)
	f.exec(t, "UPDATE assignments SET label = 'Bea' WHERE id = $1", testID(0xa5, 1))
	requireChanged(assigned, "/nights.csv?")
	f.nameDevice(t, deviceID, "Other")
	requireChanged(paths...)
}
