package simulate_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/simulate"
)

// midnight is the current time in all tests, a Thursday in winter.
var midnight = time.Date(2026, time.January, 15, 0, 0, 0, 0, time.UTC)

const day = 24 * time.Hour

func fleet(devices int) simulate.Fleet {
	return simulate.Fleet{Seed: 7, Devices: devices, FirstHardwareID: "dev:900000000000001"}
}

// measured returns what a device measures in a window.
func measured(d *simulate.Device, from, to time.Time) (all []roomsensor.Measurement) {
	for u := range d.Uploads(from, to) {
		all = append(all, u.Readings...)
	}
	return all
}

// mean returns the mean of a metric between two hours (UTC) of some days.
func mean(d *simulate.Device, m roomsensor.Metric, from time.Time, days, fromHour, toHour int) float64 {
	var sum, n float64
	for _, r := range measured(d, from, from.Add(time.Duration(days)*day)) {
		if hour := r.MeasuredAt.Hour(); hour < fromHour || hour >= toHour {
			continue
		}
		if x, ok := r.Values.Get(m); ok {
			sum, n = sum+float64(x), n+1
		}
	}
	return sum / n
}

// A measurement does not depend on the window in which it is generated, so that the demo can continue after a restart.
func TestDeviceUploads(t *testing.T) {
	t.Parallel()
	device := fleet(3).Device(2)
	whole := measured(device, midnight, midnight.Add(21*day))
	rapid.Check(t, func(t *rapid.T) {
		from := midnight.Add(time.Duration(rapid.IntRange(0, 16*86400).Draw(t, "from")) * time.Second)
		to := from.Add(time.Duration(rapid.IntRange(0, 5*86400).Draw(t, "length")) * time.Second)
		var want []roomsensor.Measurement
		for _, m := range whole {
			if !m.MeasuredAt.Before(from) && m.MeasuredAt.Before(to) {
				want = append(want, m)
			}
		}
		require.Equal(t, want, measured(device, from, to))
	})
}

// plausible are ranges far narrower than the valid ones (decision 41).
var plausible = [roomsensor.MetricCount]struct{ least, most float32 }{
	roomsensor.CO2: {370, 1500}, roomsensor.Temp: {12, 30}, roomsensor.Humidity: {25, 65},
	roomsensor.Lux: {0, 2000}, roomsensor.Sound: {20, 75},
}

func TestDevicePlausible(t *testing.T) {
	t.Parallel()
	for i := range 6 {
		present, last := [roomsensor.MetricCount]int{}, time.Time{}
		all := measured(fleet(20).Device(i), midnight.Add(-365*day), midnight)
		for _, m := range all {
			require.True(t, m.Bucket().After(last), "two measurements in one bucket: %s", last)
			last = m.Bucket()
			for _, metric := range roomsensor.Metrics {
				if x, ok := m.Values.Get(metric); ok {
					present[metric]++
					r := plausible[metric]
					require.True(t, r.least <= x && x <= r.most, "%v %s of device %d at %s", x, metric, i, m.MeasuredAt)
				}
			}
		}
		// Gaps, but few; values missing, but few.
		const buckets = 365 * 288
		require.Less(t, len(all), buckets)
		require.Greater(t, len(all), buckets*97/100)
		require.Less(t, present[roomsensor.Temp], len(all))
		require.Greater(t, present[roomsensor.Temp], len(all)*98/100)
	}
}

func TestDeviceDailyCourse(t *testing.T) {
	t.Parallel()
	monday, saturday := midnight.Add(4*day), midnight.Add(2*day)
	office, bedroom := fleet(6).Device(0), fleet(6).Device(2)
	const co2, lux, sound = roomsensor.CO2, roomsensor.Lux, roomsensor.Sound

	require.Greater(t, mean(office, co2, monday, 5, 9, 16), 200+mean(office, co2, monday, 5, 1, 5), "people breathe")
	require.Greater(t, mean(office, co2, monday, 5, 9, 16), 200+mean(office, co2, saturday, 2, 9, 16), "weekends are quiet")
	require.Greater(t, mean(bedroom, co2, monday, 5, 1, 5), 300+mean(bedroom, co2, monday, 5, 11, 16), "people sleep")
	require.Greater(t, mean(office, lux, monday, 5, 9, 14), 100+mean(office, lux, monday, 5, 0, 4), "lamps and sun")
	require.Less(t, mean(office, lux, monday, 5, 0, 4), 1.0, "nights are dark")
	require.Greater(t, mean(office, sound, monday, 5, 9, 16), 8+mean(office, sound, monday, 5, 1, 5), "people talk")

	july := midnight.Add(180 * day)
	for _, metric := range []roomsensor.Metric{roomsensor.Temp, roomsensor.Humidity, lux} {
		require.Greater(t, mean(office, metric, july, 28, 8, 16), 1.08*mean(office, metric, midnight, 28, 8, 16), "%s", metric)
	}
}

// The air of a sealed room is worse than that of the same room, at night and also on days when somebody airs it.
func TestSealed(t *testing.T) {
	t.Parallel()
	bedroom := fleet(6).Device(2)
	usual := mean(bedroom, roomsensor.CO2, midnight, 14, 1, 5)
	require.Less(t, usual, 1200.0)
	require.Greater(t, mean(bedroom.Sealed(), roomsensor.CO2, midnight, 14, 1, 5), 1.5*usual)
	require.InDelta(t, usual, mean(bedroom, roomsensor.CO2, midnight, 14, 1, 5), 0, "the device itself stays as it is")
}

// Two units in one room measure the same day, each with its own bias and noise.
func TestReplaced(t *testing.T) {
	t.Parallel()
	first := fleet(1).Device(0)
	second := first.Replaced("dev:77")
	require.Equal(t, "dev:77", second.HardwareID)
	const co2 = roomsensor.CO2
	require.InDelta(t, mean(first, co2, midnight, 7, 0, 24), mean(second, co2, midnight, 7, 0, 24), 90)
	require.False(t, slices.Equal(measured(first, midnight, midnight.Add(day)), measured(second, midnight, midnight.Add(day))))
}

func TestFleetValidate(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		fleet simulate.Fleet
		want  string // empty: valid
	}{
		{simulate.Fleet{Devices: 10, FirstHardwareID: "dev:99999999999999999990"}, ""},
		{simulate.Fleet{Devices: 11, FirstHardwareID: "dev:99999999999999999990"}, "start lower"},
		{simulate.Fleet{Devices: 1, FirstHardwareID: "dev:"}, "must be dev:"},
		{simulate.Fleet{Devices: 0, FirstHardwareID: "dev:1"}, "1 to 1000000"},
		{simulate.Fleet{Devices: simulate.MaxDevices + 1, FirstHardwareID: "dev:1"}, "1 to 1000000"},
	} {
		if err := test.fleet.Validate(); test.want == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, test.want)
		}
	}
	require.Equal(t, "dev:0010", simulate.Fleet{FirstHardwareID: "dev:0008"}.HardwareID(2))
	require.Equal(t, "dev:99999999999999999999", simulate.Fleet{FirstHardwareID: "dev:99999999999999999990"}.HardwareID(9))
}

func TestLiveUploads(t *testing.T) {
	t.Parallel()
	const count, every, length = 6, time.Minute, 3 * day
	var devices []*simulate.Device
	truth := map[string]map[roomsensor.Measurement]bool{}
	due := 0 // uploads of devices that have measured within two buckets
	for i := range count {
		d := fleet(count).Device(i)
		devices, truth[d.HardwareID] = append(devices, d), map[roomsensor.Measurement]bool{}
		all, next, newest := measured(d, midnight.Add(-time.Hour), midnight.Add(length)), 0, time.Time{}
		for _, m := range all {
			truth[d.HardwareID][m] = true
		}
		for now := midnight.Add(every * time.Duration(i) / count); now.Before(midnight.Add(length)); now = now.Add(every) {
			for ; next < len(all) && !all[next].MeasuredAt.After(now); next++ {
				newest = all[next].MeasuredAt
			}
			if now.Sub(newest) <= 2*roomsensor.BucketLength {
				due++
			}
		}
	}
	sent, last := 0, midnight
	for u := range simulate.LiveUploads(devices, midnight, every) {
		if !u.SentAt.Before(midnight.Add(length)) {
			break
		}
		sent++
		require.False(t, u.SentAt.Before(last), "uploads are in order of time")
		last = u.SentAt
		require.Len(t, u.Readings, 1)
		age := u.SentAt.Sub(u.Readings[0].MeasuredAt)
		require.True(t, 0 <= age && age <= 2*roomsensor.BucketLength, "the newest is %s old", age)
		require.True(t, truth[u.HardwareID][u.Readings[0]], "live and backfill have the same measurements")
	}
	require.Equal(t, due, sent)
	require.Less(t, sent, count*int(length/every), "a device without power sends nothing")
}
