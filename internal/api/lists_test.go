package api_test

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/conformance"
	"roomsensor/internal/roomsensor"
)

var assignmentsPath = "/devices/" + deviceID.String() + "/assignments"

// lists are the paths of every list, with what shows all that a fixture of these tests holds.
var lists = map[string]string{"/devices": "", "/devices/current": "", assignmentsPath: "", readingsPath: "last=90d&"}

// fillLists gives every list so many items.
func (f *fixture) fillLists(t *testing.T, n int) {
	t.Helper()
	f.exec(t, `INSERT INTO devices (team_id, hardware_id) SELECT $1, 'dev:' || i FROM generate_series(2, $2::int) i`, teamID, n)
	f.exec(t, `INSERT INTO assignments (device_id, type, label, started_at, ended_at)
		SELECT $1, 'place', 'Room', $2::timestamptz - i * INTERVAL '1 minute', $2::timestamptz - (i - 1) * INTERVAL '1 minute'
		FROM generate_series(1, $3::int) i`, deviceID, start, n)
	f.addReadings(t, deviceID, start.Add(-time.Duration(n)*roomsensor.BucketLength), n)
}

func TestEnvelopeOfLists(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 9.1", "decision 9.2", "decision 9.3")
	f := setup(t)
	f.fillLists(t, 2)
	for path, all := range lists {
		require.Regexp(t, `^\{"data":\[\{.+\},\{.+\}\],"next_cursor":null\}$`, string(f.get(t, path+"?"+all).body))
		require.Regexp(t, `^\{"data":\[\{.+\}\],"next_cursor":"[A-Za-z0-9_-]+"\}$`, string(f.get(t, path+"?limit=1&"+all).body))
		last := f.get(t, path+"?cursor="+f.firstCursor(t, path+"?limit=1&"+all))
		require.Regexp(t, `^\{"data":\[\{.+\}\],"next_cursor":null\}$`, string(last.body))
	}
	f.exec(t, `DELETE FROM assignments`)
	for _, path := range []string{"/devices?metadata.x=y", "/devices/current?metadata.x=y", assignmentsPath, readingsPath + "?last=1m"} {
		require.JSONEq(t, `{"data":[],"next_cursor":null}`, string(f.get(t, path).body), path)
	}
}

func TestLengthOfPages(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 9.4", "decision 9.5")
	f := setup(t)
	f.fillLists(t, 1001)
	for path, all := range lists {
		for _, tc := range []struct {
			limit string
			sizes []int
		}{
			{"", []int{1000, 1}},
			{"limit=1000&", []int{1000, 1}},
			{"limit=999&", []int{999, 2}},
			{"limit=501&", []int{501, 500}},
		} {
			var sizes []int
			for _, page := range pagesOf[map[string]any](t, f, path, tc.limit+all) {
				sizes = append(sizes, len(page.Data))
			}
			require.Equal(t, tc.sizes, sizes, "%s %s", path, tc.limit)
		}
		require.Len(t, decode[list[map[string]any]](t, f.get(t, path+"?limit=1&"+all)).Data, 1)
	}
	for _, text := range []string{
		"", "0", "00", "1001", "-1", "-0", "+1", "1.0", "1e2", "1_0", "0x1", " 1", "1 ", "１", "x", "null", "\xff", "4294967297", "18446744073709551617",
	} {
		f.forgetRequests(t)
		conformance.Covers(t, "decision 9.6")
		for path := range lists {
			f.get(t, path+"?limit="+url.QueryEscape(text)).requireError(t, roomsensor.CodeValidationFailed, "limit")
		}
	}
}

// pagesOf follows the cursors to the last page.
func pagesOf[T any](t *testing.T, f *fixture, path, first string) (pages []list[T]) {
	t.Helper()
	for query := first; ; {
		page := decode[list[T]](t, f.get(t, path+"?"+query))
		pages = append(pages, page)
		if page.NextCursor == nil {
			return pages
		}
		query = "cursor=" + *page.NextCursor
	}
}

// valuesOf are the values of a field over all pages.
func valuesOf(t *testing.T, f *fixture, path, first, field string) (values []string) {
	t.Helper()
	for _, page := range pagesOf[map[string]any](t, f, path, first) {
		for _, item := range page.Data {
			values = append(values, item[field].(string))
		}
	}
	return values
}

// Rows come in no order, and pages of every length end between any two.
func TestOrderOfLists(t *testing.T) {
	t.Parallel()
	f := setup(t)
	dice := rand.New(rand.NewPCG(1, 10)) // A seed of its own keeps it the same.
	for i := range 20 {
		id := uuid.UUID{byte(dice.Uint32()), byte(dice.Uint32()), 6: 0x40, 8: 0x80, 15: byte(dice.Uint32())}
		f.addDevice(t, teamID, id, fmt.Sprintf("dev:%d", i))
	}
	for _, i := range dice.Perm(20) {
		f.addReading(t, deviceID, start.Add(-time.Duration(i+1)*roomsensor.BucketLength), float32(i))
	}
	for _, limit := range []string{"", "limit=1", "limit=2", "limit=3", "limit=7", "limit=20"} {
		conformance.Covers(t, "decision 10.1", "decision 10.2")
		for _, path := range []string{"/devices", "/devices/current"} {
			ids := valuesOf(t, f, path, limit, "device_id")
			require.Len(t, ids, 21)
			require.IsIncreasing(t, ids)
		}
		buckets := valuesOf(t, f, readingsPath, limit, "bucket_at")
		require.Len(t, buckets, 20)
		require.IsDecreasing(t, buckets)
	}
}

// Blocks that begin at once cannot be but without the constraint; then their ids decide.
func TestOrderOfAssignments(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 10.3")
	f := setup(t)
	f.exec(t, `ALTER TABLE assignments DROP CONSTRAINT assignments_no_overlap`)
	var want []string
	for i := range 12 {
		want = append(want, number(0xa5, i).String())
	}
	for _, i := range rand.New(rand.NewPCG(1, 11)).Perm(12) { // A seed of its own keeps it the same.
		begins := start.Add(-time.Duration(i/4) * time.Hour)
		end := begins.Add(time.Duration(i) * time.Hour).Add(time.Hour)
		f.addAssignment(t, deviceID, number(0xa5, i), begins, &end)
	}
	for _, limit := range []string{"", "limit=1", "limit=2", "limit=3", "limit=4", "limit=5", "limit=12"} {
		got := valuesOf(t, f, assignmentsPath, limit, "assignment_id")
		require.True(t, slices.Equal(want, got), "%s %v", limit, got)
	}
}
