package simulate_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/simulate"
)

func TestLiveUploads(t *testing.T) {
	t.Parallel()
	const devices, every = 6, time.Minute
	var fleetDevices []*simulate.Device
	truth := map[string]map[roomsensor.Measurement]bool{}
	for i := range devices {
		d := fleet(devices).Device(i)
		fleetDevices = append(fleetDevices, d)
		truth[d.HardwareID] = map[roomsensor.Measurement]bool{}
		for m := range d.Measurements(midnight.Add(-time.Hour), midnight.Add(7*time.Hour)) {
			truth[d.HardwareID][m] = true
		}
	}
	n, last := 0, midnight
	for u := range simulate.LiveUploads(fleetDevices, midnight, every) {
		if !u.SentAt.Before(midnight.Add(6 * time.Hour)) {
			break
		}
		n++
		require.False(t, u.SentAt.Before(last), "uploads are in order of time")
		last = u.SentAt
		require.Len(t, u.Readings, 1)
		age := u.SentAt.Sub(u.Readings[0].MeasuredAt)
		require.True(t, 0 <= age && age <= 2*roomsensor.BucketLength, "the newest is %s old", age)
		require.True(t, truth[u.HardwareID][u.Readings[0]], "live and backfill have the same measurements")
	}
	require.LessOrEqual(t, n, devices*6*60)
	require.Greater(t, n, devices*6*60*3/4)
}

// A device without power sends nothing until it has power again.
func TestLiveUploadsGap(t *testing.T) {
	t.Parallel()
	device := fleet(1).Device(0)
	gap := longestGap(t, device)
	quiet, after := 0, 0
	for u := range simulate.LiveUploads([]*simulate.Device{device}, gap.From.Add(-time.Hour), time.Minute) {
		if u.SentAt.After(gap.To.Add(time.Hour)) {
			break
		}
		if u.SentAt.After(gap.From.Add(2*roomsensor.BucketLength)) && u.SentAt.Before(gap.To) {
			quiet++
		}
		if u.SentAt.After(gap.To) {
			after++
		}
	}
	require.Zero(t, quiet)
	require.Greater(t, after, 50)
}

// longestGap returns the longest time between two measurements in two months.
func longestGap(t *testing.T, d *simulate.Device) roomsensor.Window {
	t.Helper()
	var gap roomsensor.Window
	var last time.Time
	for m := range d.Measurements(midnight, midnight.Add(60*day)) {
		if !last.IsZero() && m.MeasuredAt.Sub(last) > gap.To.Sub(gap.From) {
			gap = roomsensor.Window{From: last, To: m.MeasuredAt}
		}
		last = m.MeasuredAt
	}
	require.Greater(t, gap.To.Sub(gap.From), 30*time.Minute, "two months without an outage")
	return gap
}
