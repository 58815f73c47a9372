package api_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/api"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store"
	"roomsensor/test/conformance"
)

// countingDevices counts the reads of GET /devices/current and can make them fail or wait.
type countingDevices struct {
	*store.Store
	reads   atomic.Int32
	failure atomic.Pointer[roomsensor.Error]
	before  func() // runs before each read, unless it is nil
}

// read counts a read.
func (c *countingDevices) read() error {
	c.reads.Add(1)
	if c.before != nil {
		c.before()
	}
	if err := c.failure.Load(); err != nil {
		return err
	}
	return nil
}

func (c *countingDevices) CurrentDevices(
	ctx context.Context, teamID uuid.UUID, q roomsensor.DeviceQuery, hours roomsensor.Window,
) ([]roomsensor.CurrentDevice, error) {
	if err := c.read(); err != nil {
		return nil, err
	}
	return c.Store.CurrentDevices(ctx, teamID, q, hours)
}

func (c *countingDevices) CurrentTeam(
	ctx context.Context, teamID uuid.UUID, q roomsensor.DeviceQuery, now time.Time,
) ([]roomsensor.CurrentDevice, error) {
	if err := c.read(); err != nil {
		return nil, err
	}
	return c.Store.CurrentTeam(ctx, teamID, q, now)
}

// cached starts a replica whose snapshots may have a given age, and counts its reads.
func (f *fixture) cached(t *testing.T, age time.Duration) (*fixture, *countingDevices) {
	t.Helper()
	c := &countingDevices{Store: f.store}
	other := *f
	other.replica = f.serve(t, c, func(cfg *api.Config) { cfg.SnapshotAge = age })
	return &other, c
}

// One read serves all requests until the snapshot is too old: every page, filter and ETag.
func TestSnapshotIsShared(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.addDevice(t, teamID, testID(0xde, 2), "dev:2")
	f.exec(t, `UPDATE devices SET metadata = '{"floor":"2"}' WHERE hardware_id = 'dev:2'`)
	cached, c := f.cached(t, time.Hour)
	for _, query := range []string{"", "?limit=1", "?metadata.floor=2", "?metadata.floor=3", "?limit=1000"} {
		fresh, got := f.get(t, "/devices/current"+query), cached.get(t, "/devices/current"+query)
		if query != "?limit=1" { // Its cursor is new each time.
			require.Equal(t, string(fresh.body), string(got.body), query)
		}
	}
	tag := cached.get(t, "/devices/current").header.Get("ETag")
	require.Equal(t, http.StatusNotModified, cached.get(t, "/devices/current", header("If-None-Match", tag)).status)
	require.EqualValues(t, 1, c.reads.Load())
}

// Status and hours are those of the request, however old the snapshot is.
func TestSnapshotFollowsTheClock(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.exec(t, "UPDATE device_state SET last_seen_at = $1", start.Add(-30*time.Minute)) // At 09:30.
	cached, c := f.cached(t, time.Hour)
	tag := func() string { return cached.get(t, "/devices/current").header.Get("ETag") }
	f.clock.advance(5 * time.Minute)
	first := tag()
	require.Equal(t, roomsensor.Online, cached.current(t).Status)
	f.clock.advance(24*time.Minute + 59*time.Second)
	require.Equal(t, first, tag())
	f.clock.advance(time.Second)
	require.Equal(t, roomsensor.Stale, cached.current(t).Status)
	require.NotEqual(t, first, tag())
	require.EqualValues(t, 1, c.reads.Load())
	require.JSONEq(t, `"2026-11-19T11:00:00Z"`, string(cached.current(t).Last24h["from"]))
	f.clock.advance(30 * time.Minute)
	require.JSONEq(t, `"2026-11-19T12:00:00Z"`, string(cached.current(t).Last24h["from"]))
	require.EqualValues(t, 2, c.reads.Load())
}

// lateBackend has one device, whose latest reading and whose late one become readable at some time.
type lateBackend struct {
	fakeBackend
	readable time.Time
}

func (b *lateBackend) CurrentTeam(
	context.Context, uuid.UUID, roomsensor.DeviceQuery, time.Time,
) ([]roomsensor.CurrentDevice, error) {
	d := roomsensor.CurrentDevice{Device: roomsensor.Device{ID: deviceID}}
	if !time.Now().Before(b.readable) {
		d.Latest = &roomsensor.Reading{BucketAt: start}
		d.Last24h[roomsensor.CO2].Count = 1
	}
	return []roomsensor.CurrentDevice{d}, nil
}

// With the default settings, the latest reading shows a second after it became readable, and a late one counts within 60
// seconds, whatever the rate of the requests is.
func TestSnapshotAgeByDefault(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 17 i", "decision 43 b")
	for _, every := range []time.Duration{100 * time.Millisecond, time.Second, 7 * time.Second, 59 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			b := &lateBackend{readable: time.Now().Add(41 * time.Second)}
			handler, key := newHandler(t, b), b.newKey()
			for counts := false; !counts; <-time.After(every) { // The clock is the bubble's.
				recorder := httptest.NewRecorder()
				request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/devices/current", nil)
				withKey(key)(request)
				handler.ServeHTTP(recorder, request)
				require.Equal(t, http.StatusOK, recorder.Code)
				age := time.Since(b.readable)
				if age >= time.Second {
					require.NotContains(t, recorder.Body.String(), `"latest":null`, "a request every %s", every)
				}
				counts = strings.Contains(recorder.Body.String(), `"count":1`)
				require.True(t, counts || age < time.Minute, "a request every %s", every)
			}
			synctest.Wait()
		})
	}
}

func TestSnapshotErrors(t *testing.T) {
	t.Parallel()
	f := setup(t)
	t.Run("an error is not cached", func(t *testing.T) {
		t.Parallel()
		cached, c := f.cached(t, time.Millisecond)
		c.failure.Store(roomsensor.CodeOverloaded.New())
		cached.get(t, "/devices/current").requireError(t, roomsensor.CodeOverloaded, "")
		c.failure.Store(nil)
		cached.current(t)
	})
	t.Run("a canceled request does not cancel the read that others wait for", func(t *testing.T) {
		t.Parallel()
		cached, c := f.cached(t, time.Minute)
		entered, release := make(chan struct{}), make(chan struct{})
		c.before = func() { close(entered); <-release }
		ctx, cancel := context.WithCancel(t.Context())
		first := make(chan error)
		go func() { first <- cached.try(ctx, http.MethodGet, "/v1/devices/current", "", withKey(f.key)).err }()
		<-entered
		cancel()
		require.ErrorIs(t, <-first, context.Canceled)
		close(release)
		cached.current(t)
		require.EqualValues(t, 1, c.reads.Load())
	})
}

// A team that is too large for a snapshot is read page by page.
func TestSnapshotOfALargeTeam(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.exec(t, `INSERT INTO devices (team_id, hardware_id, metadata)
		SELECT $1, 'dev:' || i, jsonb_build_object('tens', (i / 10)::text) FROM generate_series(2, 11000) i`, teamID)
	cached, c := f.cached(t, time.Hour)
	cursor := cached.firstCursor(t, "/devices/current?limit=10")
	require.EqualValues(t, 2, c.reads.Load(), "one read of the team, and one per page")
	require.Len(t, cached.items(t, "/devices/current?cursor="+cursor), 10)
	require.EqualValues(t, 3, c.reads.Load())
	require.Len(t, cached.items(t, "/devices/current?metadata.tens=77"), 10)
}
