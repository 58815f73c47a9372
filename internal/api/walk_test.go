package api_test

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"roomsensor/internal/conformance"
	"roomsensor/internal/roomsensor"
)

// listed is an item of any list, by what orders it.
type listed struct {
	DeviceID     string `json:"device_id"`
	AssignmentID string `json:"assignment_id"`
	StartedAt    string `json:"started_at"`
	BucketAt     string `json:"bucket_at"`
}

// compare is the order that decision 10 guarantees.
func (a listed) compare(b listed) int {
	if a.BucketAt != b.BucketAt {
		return strings.Compare(b.BucketAt, a.BucketAt)
	}
	if a.StartedAt != b.StartedAt {
		return strings.Compare(b.StartedAt, a.StartedAt)
	}
	return strings.Compare(a.DeviceID+a.AssignmentID, b.DeviceID+b.AssignmentID)
}

// page reads a page of a list from the replicas in turn.
func (c *scene) page(path, query string) (items []listed, next string) {
	c.t.Helper()
	c.pages++
	page := decode[list[listed]](c.t, c.replicas[c.pages%2].do(c.t, http.MethodGet, "/v1"+path+"?"+query, "", withKey(c.key)))
	if page.NextCursor != nil {
		next = "cursor=" + url.QueryEscape(*page.NextCursor)
	}
	return page.Data, next
}

// walk follows the cursors of a list while everything changes.
func (c *scene) walk(path, first string) (walked []listed) {
	c.t.Helper()
	for query := first; query != ""; {
		var items []listed
		items, query = c.page(path, query)
		walked = append(walked, items...)
		for range rapid.IntRange(0, 2).Draw(c.rt, "changes") {
			c.change()
		}
		if query != "" && rapid.IntRange(0, 3).Draw(c.rt, "other limit") == 0 {
			query += "&limit=" + strconv.Itoa(rapid.IntRange(1, 9).Draw(c.rt, "limit"))
		}
	}
	return walked
}

// Decisions 10, 11 and 13: of what was there when a walk began, every item is
// on one page, in order, and the window stays that of the first page.
func TestWalksAreWholeWhileEverythingChanges(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 10.1", "decision 10.2", "decision 10.3", "decision 11.4", "decision 11.6", "decision 13")
	s := setupStage(t)
	rapid.Check(t, func(rt *rapid.T) {
		c := s.scene(t, rt)
		readings := "/devices/" + c.device.String() + "/readings"
		path := rapid.SampledFrom([]string{
			"/devices", "/devices/current", "/devices/" + c.device.String() + "/assignments", readings, readings,
		}).Draw(rt, "list")
		filter := map[string]string{readings: "last=24h", "/devices": "metadata.floor=1"}[path]
		there, _ := c.page(path, filter)
		from, to := c.clock.now().Add(-24*time.Hour), c.clock.now()

		walked := c.walk(path, filter+"&limit="+strconv.Itoa(rapid.IntRange(1, 6).Draw(rt, "first limit")))

		require.True(rt, slices.IsSortedFunc(walked, listed.compare), "%v", walked)
		for i := 1; i < len(walked); i++ {
			require.NotEqual(rt, walked[i-1], walked[i], "twice")
		}
		require.Subset(rt, walked, there, "left out")
		for _, item := range walked {
			if item.BucketAt == "" {
				break
			}
			at, ok := roomsensor.ParseTime(item.BucketAt)
			require.True(rt, ok && !at.Before(from) && at.Before(to), "%s is not from %s to %s", at, from, to)
		}
	})
}
