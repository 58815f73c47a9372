package alerting

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/roomsensor/airquality"
)

// TestAirAlert checks when readings of a room are an alert: bad for long enough, without a long gap, and fresh.
func TestAirAlert(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 25, 2, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		co2     []float32     // the readings until age, one per bucket; 0: no reading
		age     time.Duration // of the newest bucket
		atNight bool
		day     bool // the time is not in the night
		since   time.Duration
		outcome Outcome // if there is no alert
	}{
		"long enough":       {co2: []float32{900, 1500, 1500, 1500, 1500}, age: 5 * time.Minute, since: 20 * time.Minute},
		"too short":         {co2: []float32{1500, 900, 1500, 1500, 1500}, age: 5 * time.Minute, outcome: Retracted},
		"over":              {co2: []float32{1500, 1500, 1500, 1500, 1500, 900}, age: 5 * time.Minute, outcome: Over},
		"not fresh":         {co2: []float32{1500, 1500, 1500, 1500, 1500}, age: 40 * time.Minute, outcome: Unknown},
		"just fresh":        {co2: []float32{1500, 1500, 1500, 1500}, age: 35 * time.Minute, since: 50 * time.Minute},
		"a short gap":       {co2: []float32{1500, 0, 0, 0, 0, 1500}, age: 0, since: 25 * time.Minute},
		"a long gap":        {co2: []float32{1500, 0, 0, 0, 0, 0, 0, 1500}, age: 0, outcome: Retracted},
		"the limit itself":  {co2: []float32{1400, 1400, 1400, 1400, 1400}, age: 0, outcome: Over},
		"at night":          {co2: []float32{1500, 1500, 1500, 1500}, age: 0, atNight: true, since: 15 * time.Minute},
		"not in the night":  {co2: []float32{1500, 1500, 1500, 1500}, age: 0, atNight: true, day: true, outcome: Over},
		"day counts always": {co2: []float32{1500, 1500, 1500, 1500}, age: 0, day: true, since: 15 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var last []roomsensor.ExportRow
			for i, x := range test.co2 {
				if x == 0 {
					continue
				}
				row := roomsensor.ExportRow{BucketAt: now.Add(-test.age - time.Duration(len(test.co2)-1-i)*roomsensor.BucketLength)}
				row.Values.Set(roomsensor.CO2, x)
				last = append(last, row)
			}
			room := &RoomState{DeviceID: uuid.New(), Limits: airquality.DefaultLimits(), Newest: last[len(last)-1]}
			j := AirAlert{
				Settings: &Settings{Bad: 20 * time.Minute, BadAtNight: test.atNight}, Now: now,
				Night: func(time.Time) bool { return !test.day },
			}
			_, candidate := j.Since(room)
			a, ok := j.Alert(room, last)
			if test.outcome == "" {
				require.True(t, candidate && ok)
				require.Equal(t, now.Add(-test.since), a.Since)
				return
			}
			require.False(t, candidate && ok)
			require.Equal(t, test.outcome, j.Ended(room))
		})
	}
	require.Equal(t, Unknown, (&AirAlert{Settings: &Settings{}}).Ended(nil), "the device was deleted")
}

// TestAlertRules checks the edges of the other rules; 0 switches each off.
func TestAlertRules(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 25, 2, 0, 0, 0, time.UTC)
	s := Settings{Silent: 3 * time.Hour, Coverage: 80, Rejected: time.Hour}
	var off Settings

	silent := func(s *Settings, age time.Duration) bool {
		_, ok := s.SilentAlert(&RoomState{LastSeenAt: now.Add(-age)}, now)
		return ok
	}
	require.True(t, silent(&s, 3*time.Hour))
	require.False(t, silent(&s, 3*time.Hour-time.Second))
	require.False(t, silent(&off, 100*time.Hour))

	coverage := func(s *Settings, present, expected int) bool {
		_, ok := s.CoverageAlert(&airquality.Night{}, &airquality.NightRoom{NightResult: airquality.NightResult{Present: present, Expected: expected}})
		return ok
	}
	require.True(t, coverage(&s, 79, 100))
	require.False(t, coverage(&s, 80, 100))
	require.False(t, coverage(&s, 0, 0), "nothing was expected")
	require.False(t, coverage(&off, 0, 100))

	rejects := func(s *Settings, first, last time.Duration) bool {
		_, ok := s.RejectAlert(&UnitRejects{FirstAt: now.Add(-first), LastAt: now.Add(-last)}, now)
		return ok
	}
	require.True(t, rejects(&s, 65*time.Minute, 5*time.Minute))
	require.False(t, rejects(&s, 64*time.Minute, 5*time.Minute), "not for an hour")
	require.True(t, rejects(&s, 90*time.Minute, 30*time.Minute))
	require.False(t, rejects(&s, 91*time.Minute, 31*time.Minute), "they have stopped")
	require.False(t, rejects(&off, 3*time.Hour, 0))
	for _, rule := range Rules {
		require.False(t, off.On(rule))
	}
}

// TestAlertCause checks that an alert names the metric that is furthest beyond its limit, of those that the rule judges.
func TestAlertCause(t *testing.T) {
	t.Parallel()
	cause := func(night bool, values map[roomsensor.Metric]float32) airquality.Cause {
		room := &RoomState{Limits: airquality.DefaultLimits()}
		for m, x := range values {
			room.Newest.Values.Set(m, x)
		}
		j := AirAlert{Settings: &Settings{Bad: time.Minute}, Night: func(time.Time) bool { return night }}
		return j.Cause(room)
	}
	require.Equal(t, airquality.Cause{Metric: roomsensor.CO2, High: true, Limit: 1400}, cause(true, map[roomsensor.Metric]float32{roomsensor.Temp: 27.5, roomsensor.CO2: 2800}), "twice the limit")
	require.Equal(t, airquality.Cause{Metric: roomsensor.Temp, Limit: 14}, cause(true, map[roomsensor.Metric]float32{roomsensor.Temp: 10}))
	loud := map[roomsensor.Metric]float32{roomsensor.CO2: 1450, roomsensor.Sound: 80}
	require.Equal(t, airquality.Cause{Metric: roomsensor.Sound, High: true, Limit: 55}, cause(true, loud))
	require.Equal(t, airquality.Cause{Metric: roomsensor.CO2, High: true, Limit: 1400}, cause(false, loud), "sound counts at night only")
}

// TestMailTime checks that a mail is due once a day, also when the clocks are set.
func TestMailTime(t *testing.T) {
	t.Parallel()
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	for _, test := range []struct{ at, now, want string }{
		{"07:30", "2026-11-25T06:29:59Z", "2026-11-24T06:30:00Z"},
		{"07:30", "2026-11-25T06:30:00Z", "2026-11-25T06:30:00Z"},
		{"02:30", "2026-03-29T00:59:59Z", "2026-03-28T01:30:00Z"}, // 02:30 does not exist on this day: 03:00.
		{"02:30", "2026-03-29T01:00:00Z", "2026-03-29T01:00:00Z"},
		{"02:30", "2026-10-25T00:30:00Z", "2026-10-25T00:30:00Z"}, // It exists twice: the first one.
		{"02:30", "2026-10-25T01:30:00Z", "2026-10-25T00:30:00Z"},
		{"00:00", "2026-03-01T00:00:00Z", "2026-02-28T23:00:00Z"},
	} {
		clock, ok := roomsensor.ParseClock(test.at)
		require.True(t, ok)
		now, err := time.Parse(time.RFC3339, test.now)
		require.NoError(t, err)
		require.Equal(t, test.want, MailTime(clock, now, berlin).UTC().Format(time.RFC3339), test.now)
	}
}

// TestMailPause checks that a person gets a mail about a rule every 15 minutes at most, with everything since the last one.
func TestMailPause(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 25, 2, 0, 0, 0, time.UTC)
	told := now.Add(-MailPause)
	c := MailChoice{Alerts: true, Told: map[Rule]time.Time{RuleBad: told, RuleSilent: told.Add(time.Second)}}
	due := c.Due(now)
	require.Equal(t, told, due[RuleBad])
	require.NotContains(t, due, RuleSilent)
	require.Contains(t, due, RuleRejects, "there was no mail yet")
	c.Alerts = false
	require.Empty(t, c.Due(now))

	ended := told.Add(time.Minute)
	require.True(t, (&Alert{NotedAt: told.Add(time.Second)}).News(told))
	require.False(t, (&Alert{NotedAt: told}).News(told))
	require.True(t, (&Alert{NotedAt: told, EndedAt: &ended, Outcome: Over}).News(told))
	require.False(t, (&Alert{NotedAt: told, EndedAt: &ended, Outcome: Off}).News(told))
	require.False(t, (&Alert{NotedAt: told, EndedAt: &told, Outcome: Over}).News(told))
}
