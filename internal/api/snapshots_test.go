package api_test

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/api"
	"roomsensor/internal/conformance"
	"roomsensor/internal/roomsensor"
)

// watched is a backend that counts what the snapshot costs, and may fail.
type watched struct {
	backend
	reads, sums atomic.Int32
	failure     atomic.Pointer[roomsensor.Error]
	gate        func() // is passed before each read; nil is open
}

func (w *watched) CurrentDevices(
	ctx context.Context, teamID uuid.UUID, q roomsensor.DeviceQuery, hours roomsensor.Window,
) ([]roomsensor.CurrentDevice, error) {
	w.reads.Add(1)
	if w.gate != nil {
		w.gate()
	}
	if err := w.failure.Load(); err != nil {
		return nil, err
	}
	return w.backend.CurrentDevices(ctx, teamID, q, hours)
}

func (w *watched) HourStats(
	ctx context.Context, teamID uuid.UUID, ids []uuid.UUID, hours roomsensor.Window,
) (map[uuid.UUID]roomsensor.Stats, error) {
	w.sums.Add(1)
	return w.backend.HourStats(ctx, teamID, ids, hours)
}

// kept serves a replica whose snapshots are kept for an age.
func (f *fixture) kept(t *testing.T, age time.Duration) (*fixture, *watched) {
	t.Helper()
	w := &watched{backend: backend{f.store}}
	other := *f
	other.replica = f.serve(t, w, func(cfg *api.Config) { cfg.SnapshotAge = age })
	return &other, w
}

type currentList = list[struct {
	DeviceID string   `json:"device_id"`
	Status   string   `json:"status"`
	Latest   *reading `json:"latest"`
	Last24h  struct {
		From string `json:"from"`
		CO2  struct {
			Count int     `json:"count"`
			Max   float64 `json:"max"`
		} `json:"co2_ppm"`
	} `json:"last_24h"`
}]

func (f *fixture) current(t *testing.T) currentList {
	t.Helper()
	return decode[currentList](t, f.get(t, "/devices/current"))
}

// One read serves every request until it is half as old as it may become, on
// pages and with filters too.
func TestOneReadOfTheSnapshotServesMany(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.addDevice(t, teamID, number(0xde, 2), "dev:2")
	f.exec(t, `UPDATE devices SET metadata = '{"floor":"2"}' WHERE hardware_id = 'dev:2'`)
	kept, w := f.kept(t, time.Hour)
	for _, query := range []string{"", "?limit=1", "?metadata.floor=2", "?metadata.floor=3", "?limit=1000"} {
		fresh, got := f.get(t, "/devices/current"+query), kept.get(t, "/devices/current"+query)
		if query != "?limit=1" { // Whose cursor is a new one each time.
			require.Equal(t, string(fresh.body), string(got.body), query)
		}
	}
	tag := kept.get(t, "/devices/current").header.Get("ETag")
	require.Equal(t, http.StatusNotModified, kept.get(t, "/devices/current", header("If-None-Match", tag)).status)
	require.EqualValues(t, 1, w.reads.Load())
	require.EqualValues(t, 1, w.sums.Load())
}

// A status is as of the request, and a new hour as well, however young the
// snapshot is.
func TestSnapshotFollowsTheClock(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.exec(t, "UPDATE devices SET last_seen_at = $1", start.Add(-30*time.Minute)) // At 09:30.
	kept, w := f.kept(t, time.Hour)
	f.clock.advance(5 * time.Minute)
	first := kept.get(t, "/devices/current")
	require.Equal(t, "online", kept.current(t).Data[0].Status)
	f.clock.advance(24*time.Minute + 59*time.Second)
	require.Equal(t, first.header.Get("ETag"), kept.get(t, "/devices/current").header.Get("ETag"))
	f.clock.advance(time.Second)
	require.Equal(t, "stale", kept.current(t).Data[0].Status)
	require.NotEqual(t, first.header.Get("ETag"), kept.get(t, "/devices/current").header.Get("ETag"))
	require.EqualValues(t, 1, w.reads.Load())
	require.Equal(t, "2026-11-19T11:00:00Z", kept.current(t).Data[0].Last24h.From)
	f.clock.advance(30 * time.Minute)
	require.Equal(t, "2026-11-19T12:00:00Z", kept.current(t).Data[0].Last24h.From)
	require.EqualValues(t, 2, w.reads.Load())
	require.EqualValues(t, 2, w.sums.Load(), "the hour that ended counts among those that are over")
}

// Hours that are over are summed up less often than the newest reading is
// looked for, and a late reading shows all the same (decision 17).
func TestLateReadingShowsInTheSnapshot(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 17.9")
	f := setup(t)
	kept, w := f.kept(t, 50*time.Millisecond)
	require.Zero(t, kept.current(t).Data[0].Last24h.CO2.Count)
	f.addReading(t, deviceID, start.Add(-5*time.Hour), 612)
	require.Eventually(t, func() bool {
		f.forgetRequests(t)
		d := kept.current(t).Data[0]
		return d.Latest != nil && d.Last24h.CO2.Count == 1 && d.Last24h.CO2.Max == 612
	}, 30*time.Second, 10*time.Millisecond)
	require.Less(t, w.sums.Load(), w.reads.Load())
}

// forgetRequests lets a key ask on without end.
func (f *fixture) forgetRequests(t *testing.T) {
	t.Helper()
	f.exec(t, "DELETE FROM rate_counters")
}

// What was committed a second before a request is in its answer, also while
// many ask and readings arrive; in the end the answer is that of the tables
// (decision 43).
func TestSnapshotLagsBySecondAtMost(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 43.2")
	conformance.Covers(t, "decision 17.8")
	f := setup(t)
	const age = 200 * time.Millisecond
	kept, w := f.kept(t, age)
	type commit struct {
		at  time.Time
		co2 float64
	}
	var mu sync.Mutex
	commits := []commit{{time.Now().Add(-time.Hour), 0}}
	f.addReading(t, deviceID, start, 0)
	ctx, stop := context.WithCancel(t.Context())
	var group sync.WaitGroup
	group.Go(func() {
		for i := 1; ctx.Err() == nil; i++ {
			_, err := f.sql.Exec(ctx, "UPDATE readings SET co2_ppm = $1", i)
			mu.Lock()
			if err == nil {
				commits = append(commits, commit{time.Now(), float64(i)})
			}
			mu.Unlock()
		}
	})
	const requests = 300
	for range requests {
		mu.Lock()
		least := 0.0
		for oldest := time.Now().Add(-age); len(commits) > 1 && commits[1].at.Before(oldest); {
			commits = commits[1:]
		}
		if commits[0].at.Before(time.Now().Add(-age)) {
			least = commits[0].co2
		}
		mu.Unlock()
		got := kept.current(t).Data[0]
		require.GreaterOrEqual(t, *got.Latest.CO2, least)
		require.InDelta(t, *got.Latest.CO2, got.Last24h.CO2.Max, 0, "of one moment")
	}
	stop()
	group.Wait()
	require.Less(t, int(w.reads.Load()), requests, "requests share reads")
	f.forgetRequests(t)
	want := f.get(t, "/devices/current")
	require.Eventually(t, func() bool {
		return string(kept.get(t, "/devices/current").body) == string(want.body)
	}, 30*time.Second, age)
}

// A database that is away is not hidden for longer than the snapshot lasts, and
// is asked again.
func TestSnapshotFailsWithTheDatabase(t *testing.T) {
	t.Parallel()
	f := setup(t)
	kept, w := f.kept(t, time.Millisecond)
	w.failure.Store(roomsensor.CodeOverloaded.New())
	kept.get(t, "/devices/current").requireError(t, roomsensor.CodeOverloaded, "")
	w.failure.Store(nil)
	require.Len(t, kept.current(t).Data, 1)
}

// A request that is given up does not end the read that others wait for.
func TestSnapshotOutlivesWhoAskedFirst(t *testing.T) {
	t.Parallel()
	f := setup(t)
	kept, w := f.kept(t, time.Minute)
	entered, release := make(chan struct{}), make(chan struct{})
	w.gate = func() { close(entered); <-release }
	ctx, giveUp := context.WithCancel(t.Context())
	first := make(chan error)
	go func() { first <- kept.try(ctx, http.MethodGet, "/v1/devices/current", "", withKey(f.key)).err }()
	<-entered
	giveUp()
	require.ErrorIs(t, <-first, context.Canceled)
	close(release)
	require.Len(t, kept.current(t).Data, 1)
	require.EqualValues(t, 1, w.reads.Load())
}

// A team too large to be kept is read page by page.
func TestSnapshotOfALargeTeam(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.exec(t, `INSERT INTO devices (team_id, hardware_id, metadata)
		SELECT $1, 'dev:' || i, jsonb_build_object('tens', (i / 10)::text) FROM generate_series(2, 10001) i`, teamID)
	kept, w := f.kept(t, time.Hour)
	total := 0
	for i, page := range kept.walk(t, "/devices/current", "") {
		require.LessOrEqual(t, len(page.Data), 1000, "page %d", i)
		total += len(page.Data)
	}
	require.Equal(t, 10_001, total)
	require.EqualValues(t, 1+11, w.reads.Load(), "one that finds the team too large, and one a page")
	require.Len(t, decode[currentList](t, kept.get(t, "/devices/current?metadata.tens=77")).Data, 10)
	require.Zero(t, w.sums.Load(), "pages bring their own")
}
