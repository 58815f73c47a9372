package notify_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/roomsensor/alerting"
	"roomsensor/test/storetest"
)

// block is an hour of readings of a room, all with one value of CO2, which may arrive days late.
type block struct {
	room   int
	hour   time.Time
	co2    float32
	arrive time.Time
}

// stay is a time that an athlete spends in a room.
type stay struct {
	who, room int
	from, to  time.Time
}

// simulatedWeek is a week of four rooms and three athletes, who move at noon and in the middle of nights.
type simulatedWeek struct {
	first  time.Time // midnight of the first day, UTC
	blocks []block
	stays  []stay
}

const (
	weekDays, weekRooms = 8, 4
	weekAthletes        = 3
)

func newWeek(seed uint64) *simulatedWeek {
	r := rand.New(rand.NewPCG(seed, 0))
	w := &simulatedWeek{first: storetest.At("2026-11-16T00:00:00Z")}
	for hour := w.first; hour.Before(w.first.AddDate(0, 0, weekDays)); hour = hour.Add(time.Hour) {
		for room := range weekRooms {
			if r.IntN(12) > 0 { // Some hours never arrive.
				late := [...]time.Duration{0, 0, 0, 5 * time.Hour, 30 * time.Hour, 70 * time.Hour}[r.IntN(6)]
				w.blocks = append(w.blocks, block{room, hour, [...]float32{700, 700, 1100, 1500}[r.IntN(4)], hour.Add(time.Hour + late)})
			}
		}
	}
	rooms := r.Perm(weekRooms)[:weekAthletes]
	from := w.first.Add(12 * time.Hour)
	for from.Before(w.first.AddDate(0, 0, weekDays)) {
		to := from.Add(time.Duration(72+r.IntN(240)) * roomsensor.BucketLength)
		for who := range weekAthletes {
			w.stays = append(w.stays, stay{who, rooms[who], from, to})
		}
		from = to
		rooms = r.Perm(weekRooms)[:weekAthletes]
	}
	return w
}

// verdict is the plain arithmetic over all readings: the minutes beyond the limits of the night that begins on a day.
func (w *simulatedWeek) verdict(who int, day time.Time) string {
	begin, end := day.Add(21*time.Hour), day.Add(30*time.Hour) // 22:00 to 07:00 in Berlin.
	expected, judged, warn, bad := 0, 0, 0, 0
	for at := begin; at.Before(end); at = at.Add(5 * time.Minute) {
		room, slept := w.room(who, at)
		if !slept {
			continue
		}
		expected++
		switch co2 := w.co2(room, at); {
		case co2 > 1400:
			judged, warn, bad = judged+1, warn+1, bad+1
		case co2 > 1000:
			judged, warn = judged+1, warn+1
		case co2 > 0:
			judged++
		}
	}
	switch {
	case expected == 0:
		return ""
	case bad*5 >= 30:
		return "bad"
	case warn*5 >= 60:
		return "stuffy"
	case judged*5 < 4*expected:
		return "unknown"
	}
	return "good"
}

// room returns the room of an athlete at a time.
func (w *simulatedWeek) room(who int, at time.Time) (room int, ok bool) {
	for _, s := range w.stays {
		if s.who == who && !at.Before(s.from) && at.Before(s.to) {
			return s.room, true
		}
	}
	return 0, false
}

// co2 returns what is measured in a room at a time; 0 for nothing.
func (w *simulatedWeek) co2(room int, at time.Time) float32 {
	for _, b := range w.blocks {
		if b.room == room && !at.Before(b.hour) && at.Before(b.hour.Add(time.Hour)) {
			return b.co2
		}
	}
	return 0
}

var changed = regexp.MustCompile(`^(.+), night of (.+): was .+, (?:is (\w+)\.|had no room\.)`)

// TestReportsOfAWeek checks that somebody who reads the morning reports knows the verdicts of all nights in the end: each
// equals plain arithmetic over the final readings, or a later report has said what changed.
func TestReportsOfAWeek(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			testReports(t, newWeek(seed))
		})
	}
}

func testReports(t *testing.T, w *simulatedWeek) {
	t.Helper()
	e := newEnv(t)
	e.Exec(t, `UPDATE teams SET alert_coverage = 0, alert_silent = 0, alert_bad = 0 WHERE id = $1`, e.TeamID)
	devices := []uuid.UUID{e.DeviceID}
	for n := 1; n < weekRooms; n++ {
		devices = append(devices, e.NewDevice(t, fmt.Sprintf("dev:1%d", n)))
	}
	e.Exec(t, `UPDATE device_hardware SET installed_at = '2026-01-01Z'`)
	for _, s := range w.stays {
		e.Exec(t, `INSERT INTO assignments (device_id, type, label, started_at, ended_at) VALUES ($1, 'athlete', $2, $3, $4)`,
			devices[s.room], fmt.Sprintf("Athlete %d", s.who), s.from, s.to)
	}
	known := map[string]map[string]string{} // what a reader knows, by night and athlete
	sent := w.first
	// The reports of the last days come after everything has arrived.
	for day := range weekDays + 4 {
		e.now = w.first.AddDate(0, 0, day).Add(6*time.Hour + 31*time.Minute) // 07:31 in Berlin.
		e.uploadBlocks(t, w, devices, sent, e.now)
		sent = e.now
		require.NoError(t, e.EvaluateDue(t.Context()))
		round, err := e.store.AlertRound(t.Context(), e.TeamID)
		require.NoError(t, err)
		learn(t, known, round.Report)
	}
	var compared int
	for day := range weekDays {
		date := w.first.AddDate(0, 0, day)
		want := map[string]string{}
		for who := range weekAthletes {
			if v := w.verdict(who, date); v != "" {
				want[fmt.Sprintf("Athlete %d", who)] = v
			}
		}
		got := maps.Clone(known[date.Format("Mon 2 Jan 2006")])
		if len(want) == 0 {
			require.Empty(t, got)
			continue
		}
		require.Equal(t, want, got, date)
		compared += len(want)
	}
	require.Greater(t, compared, weekDays)
}

// uploadBlocks stores what arrives in [from, to).
func (e *env) uploadBlocks(t *testing.T, w *simulatedWeek, devices []uuid.UUID, from, to time.Time) {
	t.Helper()
	var batch roomsensor.Batch
	for _, b := range w.blocks {
		if b.arrive.Before(from) || !b.arrive.Before(to) {
			continue
		}
		for n := range 12 {
			m := roomsensor.Measurement{MeasuredAt: b.hour.Add(time.Duration(n)*roomsensor.BucketLength + time.Minute)}
			m.Values.Set(roomsensor.CO2, b.co2)
			batch.Rows = append(batch.Rows, roomsensor.DeviceMeasurement{DeviceID: devices[b.room], Measurement: m})
		}
	}
	_, err := e.WriteBatch(t.Context(), batch)
	require.NoError(t, err)
}

// learn adds what a report says to what its reader knows.
func learn(t *testing.T, known map[string]map[string]string, r *alerting.MorningReport) {
	t.Helper()
	night := map[string]string{}
	for _, p := range r.People {
		night[p.Name] = p.Verdict
	}
	for _, name := range r.Good {
		night[name] = "good"
	}
	known[r.Night] = night
	for _, change := range r.Changes {
		found := changed.FindStringSubmatch(change)
		require.NotNil(t, found, change)
		if known[found[2]] == nil {
			continue // The night was in no report.
		}
		if found[3] == "" {
			delete(known[found[2]], found[1])
			continue
		}
		known[found[2]][found[1]] = found[3]
	}
}
