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

// A measurement does not depend on the window in which it is generated, so that the demo can continue after a restart.
func TestMeasurementsWindow(t *testing.T) {
	t.Parallel()
	device := fleet(3).Device(2)
	whole := slices.Collect(device.Measurements(midnight, midnight.Add(21*day)))
	rapid.Check(t, func(t *rapid.T) {
		span := int((21 * day).Seconds())
		from := midnight.Add(time.Duration(rapid.IntRange(0, span).Draw(t, "from")) * time.Second)
		to := from.Add(time.Duration(rapid.IntRange(0, 2*24*3600).Draw(t, "length")) * time.Second)
		if end := midnight.Add(21 * day); to.After(end) {
			to = end
		}
		var want []roomsensor.Measurement
		for _, m := range whole {
			if !m.MeasuredAt.Before(from) && m.MeasuredAt.Before(to) {
				want = append(want, m)
			}
		}
		require.Equal(t, want, slices.Collect(device.Measurements(from, to)))
	})
}

func TestMeasurementsPlausible(t *testing.T) {
	t.Parallel()
	for i := range 2 * len(simulate.Kinds) {
		device := fleet(20).Device(i)
		count, present := 0, [roomsensor.MetricCount]int{}
		var last time.Time
		for m := range device.Measurements(midnight.Add(-365*day), midnight) {
			count++
			if !m.Bucket().After(last) {
				require.Failf(t, "two measurements in one bucket", "%s", last)
			}
			last = m.Bucket()
			for _, metric := range roomsensor.Metrics {
				x, ok := m.Values.Get(metric)
				if !ok {
					continue
				}
				present[metric]++
				if least, greatest := plausibleRange(metric); x < least || x > greatest {
					require.Failf(t, "not plausible", "%v %s of a %s at %s", x, metric, device.Kind, m.MeasuredAt)
				}
			}
		}
		// Gaps, but few; values missing, but few.
		const buckets = 365 * 288
		require.Less(t, count, buckets)
		require.Greater(t, count, buckets*97/100)
		require.Less(t, present[roomsensor.Temp], count)
		require.Greater(t, present[roomsensor.Temp], count*98/100)
	}
}

// plausibleRange is far narrower than the valid range (decision 41).
func plausibleRange(m roomsensor.Metric) (least, greatest float32) {
	switch m {
	case roomsensor.CO2:
		return 350, 4000
	case roomsensor.Temp:
		return 8, 36
	case roomsensor.Humidity:
		return 5, 100
	case roomsensor.Lux:
		return 0, 4000
	default: // Sound.
		return 20, 90
	}
}

func TestMeasurementsDailyCourse(t *testing.T) {
	t.Parallel()
	monday, saturday := midnight.Add(4*day), midnight.Add(2*day)
	office, bedroom := fleet(6).Device(0), fleet(6).Device(2)
	require.Equal(t, simulate.Office, office.Kind)
	require.Equal(t, simulate.Bedroom, bedroom.Kind)
	const co2, lux, sound = roomsensor.CO2, roomsensor.Lux, roomsensor.Sound

	require.Greater(t, mean(office, co2, monday, 5, 9, 16), 200+mean(office, co2, monday, 5, 1, 5), "people breathe")
	require.Greater(t, mean(office, co2, monday, 5, 9, 16), 200+mean(office, co2, saturday, 2, 9, 16), "weekends are quiet")
	require.Greater(t, mean(bedroom, co2, monday, 5, 1, 5), 100+mean(bedroom, co2, monday, 5, 11, 16), "people sleep")
	require.Greater(t, mean(office, lux, monday, 5, 9, 14), 100+mean(office, lux, monday, 5, 0, 4), "lamps and sun")
	require.Less(t, mean(office, lux, monday, 5, 0, 4), 1.0, "nights are dark")
	require.Greater(t, mean(office, sound, monday, 5, 9, 16), 8+mean(office, sound, monday, 5, 1, 5), "people talk")
}

// The air of a sealed room is worse than that of the same room, at night and also on days when somebody airs it.
func TestSealed(t *testing.T) {
	t.Parallel()
	bedroom := fleet(6).Device(2)
	usual := mean(bedroom, roomsensor.CO2, midnight, 14, 1, 5)
	require.Greater(t, mean(bedroom.Sealed(), roomsensor.CO2, midnight, 14, 1, 5), 1.5*usual)
	require.InDelta(t, usual, mean(bedroom, roomsensor.CO2, midnight, 14, 1, 5), 0, "the device itself stays as it is")
}

func TestMeasurementsSeasons(t *testing.T) {
	t.Parallel()
	july := time.Date(2026, time.July, 6, 0, 0, 0, 0, time.UTC)
	lounge := fleet(6).Device(5)
	require.Equal(t, simulate.Lounge, lounge.Kind)
	for _, metric := range []roomsensor.Metric{roomsensor.Temp, roomsensor.Humidity, roomsensor.Lux} {
		winter, summer := mean(lounge, metric, midnight, 28, 8, 16), mean(lounge, metric, july, 28, 8, 16)
		require.Greater(t, summer, winter*1.08, "%s", metric)
	}
}

// Two units in one room measure the same day, each with its own bias and noise.
func TestReplaced(t *testing.T) {
	t.Parallel()
	first := fleet(1).Device(0)
	second := first.Replaced("dev:77")
	require.Equal(t, "dev:77", second.HardwareID)
	const co2 = roomsensor.CO2
	require.InDelta(t, mean(first, co2, midnight, 7, 0, 24), mean(second, co2, midnight, 7, 0, 24), 90)
	require.NotEqual(t,
		slices.Collect(first.Measurements(midnight, midnight.Add(day))),
		slices.Collect(second.Measurements(midnight, midnight.Add(day))))
}

func TestFleetValidate(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		fleet simulate.Fleet
		want  string
	}{
		{simulate.Fleet{Devices: 1, FirstHardwareID: "dev:1"}, ""},
		{simulate.Fleet{Devices: 10, FirstHardwareID: "dev:99999999999999999990"}, ""},
		{simulate.Fleet{Devices: 11, FirstHardwareID: "dev:99999999999999999990"}, "start lower"},
		{simulate.Fleet{Devices: 1, FirstHardwareID: "dev:"}, "must be dev:"},
		{simulate.Fleet{Devices: 1, FirstHardwareID: "1"}, "must be dev:"},
		{simulate.Fleet{Devices: 0, FirstHardwareID: "dev:1"}, "1 to 1000000"},
		{simulate.Fleet{Devices: simulate.MaxDevices + 1, FirstHardwareID: "dev:1"}, "1 to 1000000"},
	} {
		err := test.fleet.Validate()
		if test.want == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, test.want)
		}
	}
	require.Equal(t, "dev:0010", simulate.Fleet{FirstHardwareID: "dev:0008"}.HardwareID(2))
	require.Equal(t, "dev:99999999999999999999", simulate.Fleet{FirstHardwareID: "dev:99999999999999999990"}.HardwareID(9))
}
