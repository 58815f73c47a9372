package api_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/conformance"
	"roomsensor/internal/roomsensor"
)

// Nothing but time has to pass, and every endpoint that shows a status agrees.
func TestStatusFollowsTheClock(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "spec 3, status, online to stale", "spec 3, status, stale to offline", "spec 2, device, status")
	f := setup(t)
	f.exec(t, `UPDATE devices SET last_seen_at = $2 WHERE id = $1`, deviceID, start)
	age := time.Duration(0)
	for _, tc := range []struct {
		age  time.Duration
		want string
	}{
		{0, "online"},
		{time.Hour - time.Microsecond, "online"},
		{time.Hour, "stale"},
		{24 * time.Hour, "stale"},
		{24*time.Hour + time.Microsecond, "offline"},
		{365 * 24 * time.Hour, "offline"},
	} {
		f.clock.advance(tc.age - age)
		age = tc.age
		require.Equal(t, tc.want, decode[device](t, f.get(t, "/devices/"+deviceID.String())).Status, tc.age)
		for _, path := range []string{"/devices", "/devices/current"} {
			require.Equal(t, tc.want, decode[list[device]](t, f.get(t, path)).Data[0].Status, "%s %s", path, tc.age)
		}
	}
}

func TestDeviceThatNeverReported(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "spec 3, status, never reported")
	f := setup(t)
	for _, path := range []string{"/devices", "/devices/current"} {
		got := decode[list[device]](t, f.get(t, path)).Data[0]
		require.Equal(t, "offline", got.Status)
		require.Nil(t, got.LastSeenAt)
	}
}

// block is an item of the history.
type block struct {
	ID      string  `json:"assignment_id"`
	EndedAt *string `json:"ended_at"`
}

func TestStatesOfAnAssignment(t *testing.T) {
	t.Parallel()
	f := setup(t)
	path := "/devices/" + deviceID.String()
	active := func() any {
		t.Helper()
		shown := decode[map[string]any](t, f.get(t, path))
		for _, path := range []string{"/devices", "/devices/current"} {
			item := decode[list[map[string]any]](t, f.get(t, path)).Data[0]
			require.Equal(t, shown["active_assignment"], item["active_assignment"], path)
			require.Contains(t, item, "active_assignment")
		}
		return shown["active_assignment"]
	}
	history := func() []block { return decode[list[block]](t, f.get(t, path+"/assignments")).Data }
	id := number(0xa5, 1)

	conformance.Covers(t, "spec 3, assignment, available", "spec 2, device, active_assignment, available")
	require.Nil(t, active(), "before the first")

	conformance.Covers(t, "spec 3, assignment, open", "spec 2, device, active_assignment", "spec 2, assignment, ended_at")
	f.addAssignment(t, deviceID, id, start.Add(-time.Hour), nil)
	require.Equal(t, id.String(), active().(map[string]any)["assignment_id"])
	require.Equal(t, []block{{id.String(), nil}}, history())

	conformance.Covers(t, "spec 3, assignment, closed")
	f.exec(t, `UPDATE assignments SET ended_at = $1`, start)
	require.Nil(t, active(), "it shows in the history alone")
	require.Len(t, history(), 1)
	require.Equal(t, "2026-11-20T10:00:00Z", *history()[0].EndedAt)
}

// A device tracks an athlete, moves into a room and ends there.
func TestReadingsStayWithTheirAssignment(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "spec 1, assignments", "spec 2, assignment, window", "spec 2, assignment, assignment_id")
	f := setup(t)
	f.addReadings(t, deviceID, start.Add(-time.Hour), 12)
	athlete, room := number(0xa5, 1), number(0xa5, 2)
	readings := func(id string) (fromList, fromCSV []int) {
		t.Helper()
		fromList = co2s(decode[list[reading]](t, f.get(t, readingsPath+"?assignment_id="+id)))
		for range f.get(t, "/readings.csv?assignment_id="+id).records(t)[1:] {
			fromCSV = append(fromCSV, 0)
		}
		return fromList, fromCSV
	}
	moved := start.Add(-30 * time.Minute) // Reading 6 is of this instant.
	f.addAssignment(t, deviceID, athlete, start.Add(-50*time.Minute), &moved)
	f.addAssignment(t, deviceID, room, moved, nil)
	for range 2 {
		got, rows := readings(athlete.String())
		require.Equal(t, []int{5, 4, 3, 2}, got, "from the start on, and without the end")
		require.Len(t, rows, 4)
		got, _ = readings(room.String())
		require.Equal(t, []int{11, 10, 9, 8, 7, 6}, got)
		f.exec(t, `UPDATE assignments SET ended_at = $2 WHERE id = $1`, room, start)
		require.Empty(t, decode[list[reading]](t, f.get(t, readingsPath+"?last=1m&assignment_id="+room.String())).Data)
	}
	f.get(t, readingsPath+"?assignment_id="+number(0xa5, 3).String()).
		requireError(t, roomsensor.CodeAssignmentNotFound, "assignment_id")
}
