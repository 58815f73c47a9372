package fleet

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/upload"
)

func testPlan(devices int, d time.Duration) *plan {
	o := Full(7)
	o.Devices, o.Duration, o.Teams, o.Outage = devices, d, 3, 10*time.Minute
	return newPlan(&o, time.Date(2026, 11, 20, 10, 3, 0, 0, time.UTC))
}

// TestPlanTurns checks that each device has one turn per round, spread evenly over 5 minutes, and that expected counts
// exactly what is sent.
func TestPlanTurns(t *testing.T) {
	t.Parallel()
	for _, devices := range []int{1, 3, 1000, 7919, 15838} { // 7919 is the stride.
		p := testPlan(devices, 12*time.Minute+30*time.Second)
		require.Equal(t, devices*5/2, p.turns)
		rounds, sums := make([]int, devices), make([]sum, devices)
		for turn := range p.turns {
			device, round := p.device(turn)
			require.Equal(t, rounds[device], round)
			rounds[device]++
			require.InDelta(t, float64(turn)/float64(devices)*300, p.due(turn).Seconds(), 1e-6)
			for i := round - p.sends(device, round) + 1; i <= round; i++ {
				sums[device].add(p.bucket(i), p.values(device, i))
			}
		}
		for device := range devices {
			require.Equal(t, p.rounds(device), rounds[device])
			require.Equal(t, p.expected(device), sums[device])
		}
	}
}

// TestPlanOutages checks that one device in a hundred is offline, and that it sends every missed reading once.
func TestPlanOutages(t *testing.T) {
	t.Parallel()
	p := testPlan(1000, time.Hour)
	offline, sent := 0, map[[2]int]bool{}
	for round := range 400 {
		for device := range p.devices {
			n := p.sends(device, round)
			if n == 0 {
				offline++
			}
			for i := round - n + 1; i <= round; i++ {
				require.False(t, sent[[2]int{device, i}], "a reading is sent once")
				sent[[2]int{device, i}] = true
			}
		}
	}
	require.Equal(t, 4000, offline)
	for device := range p.devices {
		for round := range 397 { // Devices that are offline at the end have not sent their last ones.
			require.True(t, sent[[2]int{device, round}])
		}
	}
}

// TestPlanUpload checks that the service reads from an upload what the plan expects in the table.
func TestPlanUpload(t *testing.T) {
	t.Parallel()
	p := testPlan(1000, time.Hour)
	counts := map[int]bool{}
	for device := range p.devices {
		body, n := p.upload(device, 5), p.sends(device, 5)
		counts[n] = true
		if n == 0 {
			require.Nil(t, body)
			continue
		}
		u, refusal := upload.Parse(body, fmt.Sprintf(hardwareFormat, device), p.start.Add(p.due(p.turns-1)))
		require.Nil(t, refusal)
		require.Len(t, u.Readings, n)
		for i := range u.Readings {
			m := u.Readings[i].Measurement
			round := 5 - n + 1 + i
			require.Equal(t, p.measurement(device, round), m)
			require.Equal(t, p.bucket(round), m.Bucket())
			require.Empty(t, u.Readings[i].Problem)
			require.True(t, m.MeasuredAt.Before(p.start.Add(5*roomsensor.BucketLength)), "it is measured before it is sent")
		}
	}
	require.Equal(t, map[int]bool{0: true, 1: true, 3: true}, counts)
	total := 0
	for team := range p.teams {
		total += p.teamSize(team)
	}
	require.Equal(t, p.devices, total)
	require.Equal(t, 334, p.teamSize(0))
}

// TestPlanLate checks that a late device sends its readings in its uploads only, and what the plan expects.
func TestPlanLate(t *testing.T) {
	t.Parallel()
	o := Burst(7)
	p := newPlan(&o, time.Date(2026, 11, 20, 10, 3, 0, 0, time.UTC))
	for device, uploads := range map[int]int{0: 4, 1: 2, 2: 2} { // The first one sends twice.
		var s sum
		bodies := p.lateUploads(device)
		require.Len(t, bodies, uploads)
		for _, body := range bodies[:2] {
			u, refusal := upload.Parse(body, fmt.Sprintf(hardwareFormat, device), p.start.Add(o.LateAfter))
			require.Nil(t, refusal)
			for i := range u.Readings {
				m := u.Readings[i].Measurement
				round := int(m.Bucket().Sub(p.bucket(0)) / roomsensor.BucketLength)
				require.Equal(t, p.measurement(device, round), m)
				s.add(m.Bucket(), p.values(device, round))
			}
		}
		require.EqualValues(t, 864, s.count)
		require.Equal(t, p.expected(device), s)
		require.Nil(t, p.upload(device, 0))
	}
	require.False(t, p.historyEnd().After(p.bucket(1-p.missed)))
}

// TestSum checks that the checksum changes with each value, with the time and with the order of values.
func TestSum(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	next := at.Add(roomsensor.BucketLength)
	v, other := scaled{1, 2, 3, 4, 5, 6}, scaled{2, 2, 3, 4, 5, 6}
	sumOf := func(first, second scaled) (s sum) {
		s.add(at, first)
		s.add(next, second)
		return s
	}
	seen := map[sum]bool{}
	for _, s := range []sum{
		sumOf(v, v), sumOf(v, other), sumOf(other, v), sumOf(v, scaled{1, 3, 3, 4, 5, 6}), sumOf(v, scaled{1, 2, 4, 4, 5, 6}),
		sumOf(v, scaled{1, 2, 3, 5, 5, 6}), sumOf(v, scaled{1, 2, 3, 4, 6, 6}), sumOf(v, scaled{1, 2, 3, 4, 5, 7}),
	} {
		require.False(t, seen[s])
		seen[s] = true
	}
}
