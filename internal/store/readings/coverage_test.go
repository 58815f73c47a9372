package readings_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/roomsensor/completeness"
)

// coverageNow is the time of the requests of these tests.
var coverageNow = at("2026-03-10T12:32:10.5Z")

// coverageDraw is what a draw of a property test stored: a team of its own with some devices.
type coverageDraw struct {
	*fixture
	*rapid.T

	team    uuid.UUID
	window  roomsensor.Window
	devices map[uuid.UUID]*drawnDevice
}

// drawnDevice is a device with its expected buckets, and the valid_mask of its readings by bucket.
type drawnDevice struct {
	expected roomsensor.Window
	masks    map[time.Time]uint8
}

// drawCoverage stores a team with up to three devices, with readings in and around a window.
func (f *fixture) drawCoverage(ctx context.Context, rt *rapid.T) *coverageDraw {
	d := &coverageDraw{fixture: f, T: rt, team: uuid.New(), devices: map[uuid.UUID]*drawnDevice{}}
	d.window.From = coverageNow.Add(-time.Duration(rapid.IntRange(0, 300).Draw(rt, "minutes before now")) * time.Minute)
	d.window.To = d.window.From.Add(time.Duration(rapid.IntRange(1, 20_000).Draw(rt, "seconds of the window")) * time.Second)
	d.sqlExec(ctx, "INSERT INTO teams (id, name) VALUES ($1, 'Team')", d.team)
	for range rapid.IntRange(0, 3).Draw(rt, "devices") {
		d.addDevice(ctx, rt)
	}
	return d
}

func (d *coverageDraw) sqlExec(ctx context.Context, sql string, args ...any) {
	_, err := d.SQL.Exec(ctx, sql, args...)
	require.NoError(d.T, err)
}

func (d *coverageDraw) addDevice(ctx context.Context, rt *rapid.T) {
	id := uuid.New()
	hardware := "dev:" + id.String()
	d.sqlExec(ctx, "INSERT INTO devices (id, team_id, hardware_id) VALUES ($1, $2, $3)", id, d.team, hardware)
	var units []roomsensor.Installation
	next := d.window.From.Add(time.Duration(rapid.IntRange(-100, 100).Draw(rt, "first installed")) * time.Minute)
	for i := range rapid.IntRange(0, 2).Draw(rt, "units") {
		u := roomsensor.Installation{From: new(next), To: new(next.Add(time.Duration(rapid.IntRange(1, 90).Draw(rt, "installed")) * time.Minute))}
		next = *u.To
		if i == 0 && rapid.Bool().Draw(rt, "unbounded") {
			u.From = nil
		}
		units = append(units, u)
		d.sqlExec(ctx, "INSERT INTO device_hardware (hardware_id, device_id, installed_at, removed_at) VALUES ($1, $2, $3, $4)",
			fmt.Sprint(hardware, i), id, u.From, u.To)
	}
	drawn := &drawnDevice{expected: completeness.Expected(d.window, units, coverageNow), masks: map[time.Time]uint8{}}
	d.devices[id] = drawn
	from := roomsensor.BucketOf(d.window.From).Add(-10 * time.Minute)
	for bucket := from; bucket.Before(d.window.To.Add(10 * time.Minute)); bucket = bucket.Add(roomsensor.BucketLength) {
		if rapid.Bool().Draw(rt, "has a reading") {
			drawn.masks[bucket] = rapid.Uint8Range(0, 31).Draw(rt, "valid_mask")
		}
	}
	d.addReadings(ctx, id, drawn.masks)
}

// addReadings stores readings with a valid_mask. NaN and infinity count as missing, like null.
func (d *coverageDraw) addReadings(ctx context.Context, device uuid.UUID, masks map[time.Time]uint8) {
	var buckets []time.Time
	var bits []int32
	for bucket, mask := range masks {
		buckets, bits = append(buckets, bucket), append(bits, int32(mask))
	}
	d.sqlExec(ctx, `INSERT INTO readings (device_id, bucket_at, co2_ppm, temp_c, humidity_pct, lux, spl_db)
		SELECT $1, bucket, CASE WHEN mask & 1 <> 0 THEN 1 END, CASE WHEN mask & 2 <> 0 THEN 0 ELSE 'NaN'::real END,
			CASE WHEN mask & 4 <> 0 THEN 1 ELSE '-Infinity'::real END, CASE WHEN mask & 8 <> 0 THEN 1 END,
			CASE WHEN mask & 16 <> 0 THEN 1 ELSE 'Infinity'::real END
		FROM unnest($2::timestamptz[], $3::int[]) r (bucket, mask)`, device, buckets, bits)
}

// coverage counts the readings of a device, in any order.
func (d *drawnDevice) coverage() completeness.Coverage {
	count := completeness.NewCoverageCount(d.expected)
	for bucket, mask := range d.masks {
		count.Add(bucket, mask)
	}
	return count.Coverage()
}

// TestEachCoverage compares the coverage of drawn devices with that of all their readings, whatever the limits of a page are.
func TestEachCoverage(t *testing.T) {
	t.Parallel()
	f := setup(t)
	rapid.Check(t, func(rt *rapid.T) {
		d := f.drawCoverage(t.Context(), rt)
		limits := &f.Readings.Limits
		limits.CoverageStatement = rapid.IntRange(1, 150).Draw(rt, "statement")
		limits.CoveragePage = rapid.IntRange(1, 250).Draw(rt, "page")
		limits.CoverageTime = rapid.SampledFrom([]time.Duration{-1, time.Hour}).Draw(rt, "time")
		q := completeness.CoverageQuery{Window: d.window, Now: coverageNow}
		var got []uuid.UUID
		for more := true; more; {
			q.Limit = rapid.IntRange(1, 4).Draw(rt, "limit")
			page := 0
			var err error
			more, err = f.EachCoverage(t.Context(), d.team, q, func(c *completeness.DeviceCoverage) bool {
				require.Equal(rt, d.devices[c.ID].coverage(), c.Coverage)
				got, q.After = append(got, c.ID), &c.ID
				page++
				return true
			})
			require.NoError(rt, err)
			require.LessOrEqual(rt, page, q.Limit)
			require.True(rt, page > 0 || !more, "a page with a next page has an item")
		}
		require.Len(rt, got, len(d.devices))
		require.True(rt, slices.IsSortedFunc(got, func(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) }))
	})
}

// TestEachGap checks that the gaps of a device and its readings partition its expected buckets, whatever the limits of a
// page are, and that readings which arrive between two pages neither repeat nor skip a bucket (A4.2, A4.3).
func TestEachGap(t *testing.T) {
	t.Parallel()
	f := setup(t)
	rapid.Check(t, func(rt *rapid.T) {
		d := f.drawCoverage(t.Context(), rt)
		statement := rapid.IntRange(1, 20).Draw(rt, "statement")
		f.Readings.Limits.GapStatement = statement
		f.Readings.Limits.GapPage = statement * rapid.IntRange(1, 5).Draw(rt, "statements")
		for id, device := range d.devices {
			late := map[time.Time]bool{}
			gaps := d.gaps(t.Context(), id, func() {
				bucket := device.expected.From.Add(time.Duration(rapid.IntRange(0, 60).Draw(rt, "late")) * roomsensor.BucketLength)
				if _, stored := device.masks[bucket]; !stored && !late[bucket] && rapid.Bool().Draw(rt, "arrives") {
					late[bucket] = true
					d.addReadings(t.Context(), id, map[time.Time]uint8{bucket: 31})
				}
			})
			device.requirePartition(rt, gaps, late)
		}
	})
}

// requirePartition requires that each expected bucket was stored or is in exactly one gap. One whose reading arrived
// late may be in a gap.
func (d *drawnDevice) requirePartition(t require.TestingT, gaps []roomsensor.Window, late map[time.Time]bool) {
	count := map[time.Time]int{}
	for _, gap := range gaps {
		for bucket := gap.From; bucket.Before(gap.To); bucket = bucket.Add(roomsensor.BucketLength) {
			count[bucket]++
		}
	}
	for bucket := d.expected.From; bucket.Before(d.expected.To); bucket = bucket.Add(roomsensor.BucketLength) {
		_, stored := d.masks[bucket]
		switch {
		case stored:
			require.Zero(t, count[bucket], bucket)
		case late[bucket]:
			require.LessOrEqual(t, count[bucket], 1, bucket)
		default:
			require.Equal(t, 1, count[bucket], bucket)
		}
		delete(count, bucket)
	}
	require.Empty(t, count, "gaps outside the expected buckets")
}

// gaps reads all pages of the gaps of a device, and calls between after each.
func (d *coverageDraw) gaps(ctx context.Context, device uuid.UUID, between func()) (gaps []roomsensor.Window) {
	q := completeness.GapQuery{Window: d.window, Now: coverageNow}
	for {
		room, full := rapid.IntRange(1, 5).Draw(d.T, "limit"), false
		rest, err := d.EachGap(ctx, d.team, device, q, func(gap *roomsensor.Window) bool {
			if full = room == 0; full {
				return false
			}
			if n := len(gaps); n > 0 {
				require.False(d.T, gap.To.After(gaps[n-1].From), "newest first")
			}
			room--
			gaps, q.Before = append(gaps, *gap), new(gap.From)
			return true
		})
		require.NoError(d.T, err)
		if rest != nil {
			q.Before = rest
		} else if !full {
			return gaps
		}
		between()
	}
}
