package fleet_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
)

// TestTimeline checks the order, the filters, the pages and the window of a timeline.
func TestTimeline(t *testing.T) {
	t.Parallel()
	f := setup(t)
	day := at("2026-01-10T00:00:00Z")
	names := []string{"bed 9", "Bed 10", "cot 2"} // In the order of people, not of bytes.
	devices := make([]uuid.UUID, len(names))
	for i, name := range names {
		d, err := f.CreateDevice(t.Context(), roomsensor.NewDevice{
			TeamID: f.TeamID, HardwareID: fmt.Sprintf("dev:10%d", i), DisplayName: &name,
			Metadata: map[string]string{"floor": fmt.Sprint(i / 2)},
		}, day)
		require.NoError(t, err)
		devices[i] = d.ID
	}
	past := f.start(t, devices[0], "Past", day.Add(-72*time.Hour))
	f.mustChange(t, roomsensor.EndAssignment(past.ID, day))
	inside := f.start(t, devices[0], "Inside", day)
	f.mustChange(t, roomsensor.EndAssignment(inside.ID, day.Add(time.Hour)))
	f.start(t, devices[0], "Open", day.Add(48*time.Hour))
	window := roomsensor.Window{From: day, To: day.Add(24 * time.Hour)}
	// read returns the hardware ids of a page, each with the labels of its assignments.
	read := func(q roomsensor.TimelineQuery) (page []string, total int) {
		q.Window = window
		timeline, err := f.Timeline(t.Context(), f.TeamID, q)
		require.NoError(t, err)
		for i := range timeline.Devices {
			line := timeline.Devices[i].HardwareID
			for _, a := range timeline.Devices[i].Assignments {
				line += " " + a.Label
			}
			page = append(page, line)
		}
		return page, timeline.Total
	}
	page, total := read(roomsensor.TimelineQuery{Limit: 3})
	require.Equal(t, []string{"dev:100 Inside Open", "dev:101", "dev:102"}, page)
	require.Equal(t, 4, total)
	page, _ = read(roomsensor.TimelineQuery{Limit: 3, Skip: 3})
	require.Equal(t, []string{"dev:1"}, page)
	page, total = read(roomsensor.TimelineQuery{Limit: 3, Metadata: map[string]string{"floor": "1"}})
	require.Equal(t, []string{"dev:102"}, page)
	require.Equal(t, 1, total)
	for search, want := range map[string][]string{
		"BED 1": {"dev:101"}, "dev:102": {"dev:102"}, "insi": {"dev:100 Inside Open"}, "past": nil, "open": nil, "%": nil, "\x00": nil,
	} {
		page, _ = read(roomsensor.TimelineQuery{Limit: 3, Search: search})
		require.Equal(t, want, page, search)
	}
}
