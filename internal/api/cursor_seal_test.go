package api_test

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/conformance"
	"roomsensor/internal/roomsensor"
)

// firstCursors are cursors of every list.
func (f *fixture) firstCursors(t *testing.T) map[string]string {
	t.Helper()
	cursors := map[string]string{}
	for path, all := range lists {
		cursors[path] = f.firstCursor(t, path+"?limit=1&"+all)
	}
	return cursors
}

func TestCursorsAreOpaque(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 11.1")
	f := setup(t)
	f.fillLists(t, 3)
	f.exec(t, `UPDATE devices SET metadata = '{"secret-tag":"secret-value"}'`)
	lists := map[string]string{"/devices": "metadata.secret-tag=secret-value", readingsPath: "last=90d"}
	for path, query := range lists {
		first, second := f.firstCursor(t, path+"?limit=1&"+query), f.firstCursor(t, path+"?limit=1&"+query)
		require.NotEqual(t, first, second, "equal pages are not to be told by their cursors")
		plain, err := base64.RawURLEncoding.DecodeString(first)
		require.NoError(t, err)
		id, _, _ := roomsensor.ParseKey(roomsensor.APIKey, f.key)
		for _, known := range []string{id, "secret", string(deviceID[:]), deviceID.String(), "2026"} {
			require.NotContains(t, string(plain), known)
		}
	}
}

// Every place of a cursor in which a bit is wrong, and every wrong length.
func TestTamperedCursors(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 11.2", "decision 12.3")
	f := setup(t)
	f.fillLists(t, 3)
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	for path, cursor := range f.firstCursors(t) {
		f.forgetRequests(t)
		bent := []string{
			cursor[1:], cursor[:len(cursor)-1], cursor + "A", cursor + "=", "A" + cursor, cursor + "%0A", cursor[:9] + "%0D%0A" + cursor[9:], "%20" + cursor,
			cursor + cursor, strings.ToUpper(cursor), cursor[:len(cursor)/2], "AA", "null", "0", strings.Repeat("A", len(cursor)), "..", "%00",
		}
		for i := range cursor {
			bit := 1 << (i % 6)
			other := alphabet[strings.IndexByte(alphabet, cursor[i])^bit]
			bent = append(bent, cursor[:i]+string(other)+cursor[i+1:])
		}
		for _, text := range bent {
			f.get(t, path+"?cursor="+text).requireError(t, roomsensor.CodeCursorInvalid, "cursor")
		}
		require.Equal(t, http.StatusOK, f.get(t, path+"?cursor="+cursor).status)
	}
}

// A cursor of a page has its own 24 hours, whenever the walk began.
func TestLifetimeOfCursors(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 11.5", "decision 12.4")
	f := setup(t)
	f.fillLists(t, 4)
	for path, all := range lists {
		cursor := f.firstCursor(t, path+"?limit=1&"+all)
		for range 2 {
			f.clock.advance(day)
			page := decode[list[map[string]any]](t, f.get(t, path+"?cursor="+cursor))
			require.NotNil(t, page.NextCursor)
			cursor = *page.NextCursor
		}
		f.clock.advance(day + time.Microsecond)
		f.get(t, path+"?cursor="+cursor).requireError(t, roomsensor.CodeCursorInvalid, "cursor")
	}
}

// The next page comes from a process that was started after the first one ended.
func TestCursorsSurviveARestart(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 11.6")
	f := setup(t)
	f.fillLists(t, 2)
	cursors := f.firstCursors(t)
	f.server.Close()
	f.store.Close()
	f.store = openStore(t, f.url)
	f.replica = f.serve(t, backend{f.store}, nil)
	for path, cursor := range cursors {
		require.Len(t, decode[list[map[string]any]](t, f.get(t, path+"?cursor="+cursor)).Data, 1, path)
	}
}
