package airquality_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/roomsensor/airquality"
)

func valuesOf(byMetric map[roomsensor.Metric]float32) *roomsensor.Values {
	var values roomsensor.Values
	for m, x := range byMetric {
		values.Set(m, x)
	}
	return &values
}

// TestJudge checks the verdict on a room: the worst metric counts, a limit itself is fine, sound counts at night only,
// and without a value that has a limit nothing is known.
func TestJudge(t *testing.T) {
	t.Parallel()
	limits := airquality.DefaultLimits()
	for _, test := range []struct {
		values map[roomsensor.Metric]float32
		night  bool
		want   airquality.Verdict
	}{
		{nil, true, airquality.Unknown},
		{map[roomsensor.Metric]float32{roomsensor.Lux: 5000}, true, airquality.Unknown},
		{map[roomsensor.Metric]float32{roomsensor.Sound: 90}, false, airquality.Unknown},
		{map[roomsensor.Metric]float32{roomsensor.Sound: 90}, true, airquality.Bad},
		{map[roomsensor.Metric]float32{roomsensor.CO2: 1000}, false, airquality.Good},
		{map[roomsensor.Metric]float32{roomsensor.CO2: 1000.5}, false, airquality.Stuffy},
		{map[roomsensor.Metric]float32{roomsensor.CO2: 1400}, false, airquality.Stuffy},
		{map[roomsensor.Metric]float32{roomsensor.CO2: 1400.5}, false, airquality.Bad},
		{map[roomsensor.Metric]float32{roomsensor.CO2: 500, roomsensor.Temp: 13.9}, false, airquality.Bad},
		{map[roomsensor.Metric]float32{roomsensor.CO2: 500, roomsensor.Temp: 14}, false, airquality.Stuffy},
		{map[roomsensor.Metric]float32{roomsensor.CO2: 500, roomsensor.Temp: 15.9}, false, airquality.Stuffy},
		{map[roomsensor.Metric]float32{roomsensor.CO2: 500, roomsensor.Temp: 16}, false, airquality.Good},
		{map[roomsensor.Metric]float32{roomsensor.CO2: 500, roomsensor.Humidity: 1}, false, airquality.Stuffy},
	} {
		air := limits.Judge(valuesOf(test.values), test.night)
		require.Equal(t, test.want, air.Verdict, "%v", test)
	}
	air := limits.Judge(valuesOf(map[roomsensor.Metric]float32{roomsensor.CO2: 1100, roomsensor.Temp: 10}), false)
	require.Equal(t, airquality.Stuffy, air.Of(roomsensor.CO2))
	require.Equal(t, airquality.Bad, air.Low[roomsensor.Temp])
	require.Equal(t, airquality.Good, air.High[roomsensor.Temp])
	require.Equal(t, airquality.Unknown, air.Of(roomsensor.Humidity))
}

// TestLimitsFor checks which limit counts for a device: its own rule, then the first rule about a tag, then the team's.
func TestLimitsFor(t *testing.T) {
	t.Parallel()
	warn := func(x float32) airquality.Limit { return airquality.Limit{High: airquality.Bound{Warn: &x}} }
	id := uuid.New()
	team := airquality.TeamLimits{Limits: airquality.Limits{roomsensor.CO2: warn(1), roomsensor.Temp: warn(1)}}
	team.Rules = []airquality.LimitRule{
		{Tag: "kind=dorm", Metric: roomsensor.CO2, Limit: warn(2)},
		{Tag: "floor=1", Metric: roomsensor.CO2, Limit: warn(3)},
		{DeviceID: id, Metric: roomsensor.CO2, Limit: warn(4)},
		{Tag: "floor=1", Metric: roomsensor.Sound, Limit: warn(5)},
		{Tag: "note=a=b", Metric: roomsensor.Temp},
	}
	for _, test := range []struct {
		device uuid.UUID
		tags   map[string]string
		want   airquality.Limits
	}{
		{uuid.New(), nil, airquality.Limits{roomsensor.CO2: warn(1), roomsensor.Temp: warn(1)}},
		{
			uuid.New(),
			map[string]string{"floor": "1", "kind": "dorm"},
			airquality.Limits{roomsensor.CO2: warn(2), roomsensor.Temp: warn(1), roomsensor.Sound: warn(5)},
		},
		{
			uuid.New(),
			map[string]string{"floor": "1", "note": "a=b"},
			airquality.Limits{roomsensor.CO2: warn(3), roomsensor.Sound: warn(5)},
		},
		{id, map[string]string{"kind": "dorm"}, airquality.Limits{roomsensor.CO2: warn(4), roomsensor.Temp: warn(1)}},
	} {
		require.Equal(t, test.want, team.For(test.device, test.tags), "%v", test)
		slices.Reverse(team.Rules)
		require.Equal(t, test.want[roomsensor.Sound], team.For(test.device, test.tags)[roomsensor.Sound])
		slices.Reverse(team.Rules)
	}
}

// night returns a query of the night of 21 November and its default limits.
func night(t require.TestingT) (airquality.NightQuery, *airquality.Limits) {
	return airquality.NightQuery{
		Window: roomsensor.Window{From: instant(t, "2026-11-21T22:00:00Z"), To: instant(t, "2026-11-22T07:00:00Z")},
		Now:    instant(t, "2026-11-23T00:00:00Z"),
	}, new(airquality.DefaultLimits())
}

// nightOf returns the result of a night with a number of readings for each value of CO₂.
func nightOf(t require.TestingT, readings ...int) airquality.NightResult {
	q, limits := night(t)
	tally := airquality.NewNightTally(&q, &roomsensor.Assignment{}, nil, limits)
	at := q.Window.From
	for pair := range slices.Chunk(readings, 2) {
		for range pair[0] {
			tally.Add(at, valuesOf(map[roomsensor.Metric]float32{roomsensor.CO2: float32(pair[1])}))
			at = at.Add(roomsensor.BucketLength)
		}
	}
	return tally.Result()
}

// TestNightVerdict checks the minutes from which a night is bad or stuffy, and that a night of which too little is known
// is not good.
func TestNightVerdict(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		readings []int
		want     airquality.Verdict
	}{
		{[]int{6, 1500, 102, 600}, airquality.Bad},
		{[]int{5, 1500, 103, 600}, airquality.Good},
		{[]int{5, 1500, 7, 1100, 96, 600}, airquality.Stuffy},
		{[]int{12, 1001, 96, 600}, airquality.Stuffy},
		{[]int{11, 1001, 97, 600}, airquality.Good},
		{[]int{87, 600}, airquality.Good},
		{[]int{86, 600}, airquality.Unknown},
		{[]int{6, 1500}, airquality.Bad},
		{nil, airquality.Unknown},
	} {
		result := nightOf(t, test.readings...)
		require.Equal(t, test.want, result.Verdict(), "%v", test.readings)
	}
	result := nightOf(t, 5, 1500, 7, 1100)
	_, limits := night(t)
	cause, ok := result.Cause(airquality.Stuffy, limits)
	require.True(t, ok)
	require.Equal(t, airquality.Cause{Metric: roomsensor.CO2, High: true, Limit: 1000, For: time.Hour}, cause)
	require.InDelta(t, 5*500+7*100, result.Excess, 1e-9)
}

// TestNightAdd checks that the parts of a night in two rooms add up to what one room would have.
func TestNightAdd(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		q, limits := night(t)
		moved := q.Window.From.Add(time.Duration(rapid.IntRange(-10, 120).Draw(t, "moved")) * roomsensor.BucketLength)
		first, second := roomsensor.Assignment{EndedAt: &moved}, roomsensor.Assignment{StartedAt: moved}
		parts := []*airquality.NightTally{
			airquality.NewNightTally(&q, &first, nil, limits), airquality.NewNightTally(&q, &second, nil, limits),
		}
		whole := airquality.NewNightTally(&q, &roomsensor.Assignment{}, nil, limits)
		for at := q.Window.From; at.Before(q.Window.To); at = at.Add(roomsensor.BucketLength) {
			values := valuesOf(map[roomsensor.Metric]float32{
				roomsensor.CO2:  float32(rapid.IntRange(400, 2000).Draw(t, "co2")),
				roomsensor.Temp: float32(rapid.IntRange(10, 30).Draw(t, "temp")),
			})
			whole.Add(at, values)
			for _, part := range parts {
				if part.Window().Contains(at) {
					part.Add(at, values)
				}
			}
		}
		want, got, other := whole.Result(), parts[0].Result(), parts[1].Result()
		got.Add(&other)
		for m := range want.Metrics {
			require.InDelta(t, want.Metrics[m].Mean, got.Metrics[m].Mean, 0.001)
			got.Metrics[m].Mean = want.Metrics[m].Mean
		}
		require.Equal(t, want, got)
	})
}

// TestNightOrder checks the order of rooms: by verdict, CO₂ by its amount, other metrics, and athletes before places.
func TestNightOrder(t *testing.T) {
	t.Parallel()
	room := func(kind roomsensor.AssignmentType, readings ...int) airquality.NightRoom {
		r := airquality.NightRoom{NightResult: nightOf(t, readings...)}
		r.Assignment.Type = kind
		return r
	}
	want := []airquality.NightRoom{
		room(roomsensor.Place, 10, 2000),
		room(roomsensor.Athlete, 12, 1500),
		room(roomsensor.Athlete, 100, 1100),
		room(roomsensor.Athlete),
		room(roomsensor.Place),
		room(roomsensor.Athlete, 108, 600),
		room(roomsensor.Place, 108, 600),
	}
	rapid.Check(t, func(t *rapid.T) {
		got := rapid.Permutation(want).Draw(t, "rooms")
		slices.SortFunc(got, func(a, b airquality.NightRoom) int { return a.Compare(&b) })
		require.Equal(t, want, got)
	})
}

// TestNightTally checks what counts for an assignment that began during the night: its part of the night.
func TestNightTally(t *testing.T) {
	t.Parallel()
	q, limits := night(t)
	q.Now = instant(t, "2026-11-22T05:02:00Z")
	assignment := roomsensor.Assignment{StartedAt: instant(t, "2026-11-22T04:33:00Z")}
	tally := airquality.NewNightTally(&q, &assignment, nil, limits)
	require.Equal(t, roomsensor.Window{From: assignment.StartedAt, To: q.Window.To}, tally.Window())
	for minute, co2 := range map[int]float32{35: 1000, 40: 1000.5, 45: 2000, 50: 400} {
		values := valuesOf(map[roomsensor.Metric]float32{roomsensor.CO2: co2, roomsensor.Temp: co2 / 100})
		tally.Add(instant(t, "2026-11-22T04:00:00Z").Add(time.Duration(minute)*time.Minute), values)
	}
	result := tally.Result()
	require.Equal(t, 5, result.Expected, "04:35 to 05:00: the night is running")
	require.Equal(t, 4, result.Present)
	require.Equal(t, 4, result.Judged)
	require.Equal(t, airquality.NightMetric{
		Summary: roomsensor.Summary{Min: 400, Max: 2000, Mean: 1100.125, Count: 4}, High: airquality.Beyond{Warn: 2, Bad: 1},
	}, result.Metrics[roomsensor.CO2])
	require.Equal(t, airquality.Beyond{Warn: 3, Bad: 3}, result.Metrics[roomsensor.Temp].Low)
	require.Equal(t, 4, result.Warn, "in each reading, one of the metrics was beyond a limit")
	require.Equal(t, 4, result.Bad, "20, 10.005 and 4 degrees: bad in three readings, and in the fourth by CO₂")
	require.Zero(t, result.Metrics[roomsensor.Sound].Count)
	require.Equal(t, airquality.Mean{Sum: 1000 + 1000.5, Count: 2}, result.CO2[17], "04:22:30 to 04:45")

	ended := instant(t, "2026-11-21T21:00:00Z")
	over := roomsensor.Assignment{StartedAt: ended.Add(-time.Hour), EndedAt: &ended}
	none := airquality.NewNightTally(&q, &over, nil, limits).Result()
	require.Zero(t, none.Expected)
	require.True(t, none.Window.Empty())
}

func TestParseLimit(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"..1000/1400", "400..1000", "20/..70/", "..", "..1000/", "500/400.."} {
		limit, err := airquality.ParseLimit(roomsensor.CO2, text)
		require.NoError(t, err, text)
		require.Equal(t, text, limit.String())
		require.Equal(t, text == "..", limit.IsZero())
	}
	for text, want := range map[string]string{
		"16": "form LOW..HIGH", "": "form LOW..HIGH", "a..": "Enter a number", "..NaN": "Enter a number", "..1e9": "Enter a number",
		"26..16": "from the lowest to the highest", "14/16..": "from the lowest", "..27/24": "from the lowest", "16..16": "must be less",
	} {
		_, err := airquality.ParseLimit(roomsensor.Temp, text)
		require.ErrorContains(t, err, want, text)
	}
	limit, err := airquality.NewLimit(roomsensor.Temp, "", "", "", "26,5")
	require.NoError(t, err)
	require.Equal(t, airquality.Bound{Warn: new(float32(26.5)), Bad: new(float32(26.5))}, limit.High)
}
