package app_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"roomsensor/internal/roomsensor"
)

// This file says in the plainest way where readings belong when units move between devices and teams (decision 40):
// it goes through everything that happened, one step after the other, for every single reading.

// step is something that happened to the hardware: a unit was put into a device, where another one may have sat, or,
// for -1, the unit of the device was taken out.
type step struct {
	at           time.Time
	device, unit int
}

// history is devices with a unit each since ever, and what happened then, the oldest first.
type history struct {
	steps []step
}

const (
	deviceCount = 3 // 0 and 1 of the first team, 2 of the second
	unitCount   = 4 // one of which sits nowhere at first
)

func teamOf(device int) int { return device / 2 }

var began = time.Date(2026, time.March, 3, 10, 2, 13, 0, time.UTC)

// drawHistory draws steps that are possible: a unit sits in one device at a time.
func drawHistory(t *rapid.T) history {
	var h history
	at := began
	for range rapid.IntRange(0, 8).Draw(t, "steps") {
		apart := rapid.SampledFrom([]time.Duration{time.Microsecond, time.Second, 4 * time.Minute, time.Hour})
		at = at.Add(apart.Draw(t, "apart"))
		next := step{at: at, device: rapid.IntRange(0, deviceCount-1).Draw(t, "device"), unit: -1}
		there := h.sitting(at)
		if there[next.device] < 0 || rapid.Bool().Draw(t, "put") {
			free := slices.DeleteFunc([]int{0, 1, 2, 3}, func(u int) bool { return slices.Contains(there[:], u) })
			if len(free) == 0 {
				continue
			}
			next.unit = rapid.SampledFrom(free).Draw(t, "unit")
		}
		h.steps = append(h.steps, next)
	}
	return h
}

// sitting is the unit in each device at an instant, -1 for none.
func (h *history) sitting(at time.Time) (there [deviceCount]int) {
	for device := range there {
		there[device] = device
	}
	for _, s := range h.steps {
		if !s.at.After(at) {
			there[s.device] = s.unit
		}
	}
	return there
}

// hosts are the devices in which a unit ever sat.
func (h *history) hosts(unit int) map[int]bool {
	devices := map[int]bool{}
	if unit < deviceCount {
		devices[unit] = true
	}
	for _, s := range h.steps {
		if s.unit == unit {
			devices[s.device] = true
		}
	}
	return devices
}

// burst is one upload after everything has happened.
type burst struct {
	unit     int
	team     int // of the credential; -1 for trusted ground
	readings []reading
}

type reading struct {
	at  time.Time
	co2 int
}

// drawBursts draws uploads of readings around the steps. A unit measures an instant once, so its value follows from
// both.
func drawBursts(t *rapid.T, h *history) (list []burst) {
	instants := []time.Time{began}
	for _, s := range h.steps {
		instants = append(instants, s.at.Add(-time.Microsecond), s.at, s.at.Add(time.Microsecond), s.at.Add(3*time.Minute))
	}
	slices.SortFunc(instants, time.Time.Compare)
	instants = slices.Compact(instants)
	for range rapid.IntRange(1, 6).Draw(t, "uploads") {
		b := burst{
			unit: rapid.IntRange(0, unitCount-1).Draw(t, "of"),
			team: rapid.SampledFrom([]int{-1, -1, 0, 1}).Draw(t, "team"),
		}
		for _, n := range rapid.SliceOfN(rapid.IntRange(0, len(instants)-1), 1, 12).Draw(t, "measured") {
			b.readings = append(b.readings, reading{instants[n], 1 + 100*b.unit + n})
		}
		list = append(list, b)
	}
	return list
}

func (b *burst) text(unit string) string {
	var readings []string
	for _, r := range b.readings {
		readings = append(readings, fmt.Sprintf(`{"measured_at":%q,"co2_ppm":%d}`, roomsensor.FormatTime(r.at), r.co2))
	}
	return fmt.Sprintf(`{"hardware_id":%q,"readings":[%s]}`, unit, strings.Join(readings, ","))
}

// outcome is what must be served and kept after all of it.
type outcome struct {
	served  [deviceCount]map[string]int // CO2 by bucket
	rejects map[string]int              // readings by upload and reason
}

func (h *history) expect(bursts []burst) outcome {
	o := outcome{rejects: map[string]int{}}
	newest := [deviceCount]map[string]time.Time{}
	for device := range deviceCount {
		o.served[device], newest[device] = map[string]int{}, map[string]time.Time{}
	}
	for n, b := range bursts {
		visible := maps.Clone(h.hosts(b.unit))
		maps.DeleteFunc(visible, func(device int, _ bool) bool { return b.team >= 0 && teamOf(device) != b.team })
		for _, r := range b.readings {
			there := h.sitting(r.at)
			device := slices.Index(there[:], b.unit)
			bucket := roomsensor.FormatTime(roomsensor.BucketOf(r.at))
			switch {
			case len(visible) == 0:
				o.rejects[fmt.Sprint(n, " unknown_unit")]++
			case device < 0 || !visible[device]:
				o.rejects[fmt.Sprint(n, " not_installed")]++
			case !r.at.Before(newest[device][bucket]):
				o.served[device][bucket], newest[device][bucket] = r.co2, r.at
			}
		}
	}
	return o
}
