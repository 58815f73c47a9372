package dashboard_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/dashboard"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store"
	"roomsensor/test/proctest"
)

// event is a server-sent event.
type event struct {
	name, id string
	data     map[string]any
}

// events are those of a stream. The channel is closed when the stream ends.
type events struct {
	response *http.Response
	all      chan event
}

// stream opens the stream of a page, which ends with the test.
func (p *person) stream(t *testing.T, path string) *events {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+path, nil)
	require.NoError(t, err)
	response, err := p.client.Do(r)
	require.NoError(t, err)
	s := &events{response, make(chan event, 2000)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.read()
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return s
}

func (s *events) read() {
	defer close(s.all)
	defer func() { _ = s.response.Body.Close() }()
	var e event
	for lines := bufio.NewScanner(s.response.Body); lines.Scan(); {
		switch name, value, _ := strings.Cut(lines.Text(), ": "); name {
		case "event":
			e.name = value
		case "id":
			e.id = value
		case "data":
			_ = json.Unmarshal([]byte(value), &e.data)
		case "":
			s.all <- e
			e = event{}
		}
	}
}

// next returns the next event, or one without a name if the stream ended.
func (s *events) next(t *testing.T) event {
	t.Helper()
	select {
	case e := <-s.all:
		return e
	case <-time.After(time.Minute):
		require.Fail(t, "no event")
	}
	return event{}
}

// untilState returns the events up to a state, and that state.
func (s *events) untilState(t *testing.T) (before []event, state event) {
	t.Helper()
	for {
		e := s.next(t)
		require.NotEmpty(t, e.name, "the stream ended")
		if e.name == "state" {
			return before, e
		}
		before = append(before, e)
	}
}

// version returns the version of a page, as a script sends it.
func (p *page) version() string {
	version, _ := p.find("#overview").Attr("data-version")
	return version
}

func (e *env) tilesPath() string { return overviewPath(e.team) + "/tiles" }

// TestTiles checks what a page hears: tiles that changed since it was made, new ones, and those that are gone.
func TestTiles(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	a := e.addDevice(t, e.team, "dev:1", "A", time.Minute)
	c := e.addDevice(t, e.team, "dev:3", "C", time.Minute)
	e.addReading(t, a, 10*time.Minute, 600, 21)
	p := e.signIn(t, e.team, roomsensor.Viewer)
	s := p.stream(t, e.tilesPath()+"?since="+p.get(t, overviewPath(e.team)).version())
	require.Equal(t, "text/event-stream", s.response.Header.Get("Content-Type"))
	first, state := s.untilState(t)
	require.Empty(t, first, "nothing changed since the page was made")
	require.InDelta(t, 2, state.data["shown"], 0)
	require.Equal(t, "Air in 2 rooms: 1 good, 1 unknown", state.data["summary"])

	// changes waits for the tiles that a change causes.
	changes := func() []event {
		for {
			if list, _ := s.untilState(t); len(list) > 0 {
				return list
			}
		}
	}
	_, err := e.store.WriteBatch(t.Context(), roomsensor.Batch{Rows: []roomsensor.DeviceMeasurement{{
		DeviceID: a, Measurement: measurement(e.now.Add(-5*time.Minute), 777),
	}}})
	require.NoError(t, err)
	list := changes()
	require.Len(t, list, 1)
	require.Equal(t, a.String(), list[0].data["id"])
	require.Contains(t, list[0].data["html"], "777\u00a0ppm")

	b := e.addDevice(t, e.team, "dev:2", "B", time.Minute)
	list = changes()
	require.Len(t, list, 1)
	require.Equal(t, []any{b.String(), a.String()}, []any{list[0].data["id"], list[0].data["after"]})

	e.exec(t, `DELETE FROM devices WHERE id = $1`, c)
	list = changes()
	require.Len(t, list, 1)
	require.Equal(t, "gone", list[0].name)
	require.Equal(t, c.String(), list[0].data["id"])

	e.exec(t, `UPDATE devices SET display_name = 'Z' WHERE id = $1`, a)
	list = changes()
	require.Len(t, list, 1, "only the tile that moved")
	require.Equal(t, []any{a.String(), b.String()}, []any{list[0].data["id"], list[0].data["after"]})

	t.Run("filter", func(t *testing.T) {
		found, state := p.stream(t, e.tilesPath()+"?q=b").untilState(t)
		require.Len(t, found, 1, "a page without a version gets every tile that it shows")
		require.Equal(t, b.String(), found[0].data["id"])
		require.Equal(t, "1 of 2 rooms", state.data["summary"])
	})
	t.Run("another replica does not know what changed", func(t *testing.T) {
		found, _ := p.stream(t, e.tilesPath()+"?since=other-"+strings.SplitN(state.id, "-", 2)[1]).untilState(t)
		require.Len(t, found, 2)
	})
}

func measurement(at time.Time, co2 float32) (m roomsensor.Measurement) {
	m.MeasuredAt = at
	m.Values.Set(roomsensor.CO2, co2)
	return m
}

// countingStore counts the reads of overviews, and can make them fail.
type countingStore struct {
	*store.Store

	reads  atomic.Int32
	failed atomic.Bool
}

func (c *countingStore) CurrentDevices(
	ctx context.Context, teamID uuid.UUID, q roomsensor.DeviceQuery, hours roomsensor.Window,
) ([]roomsensor.CurrentDevice, error) {
	c.reads.Add(1)
	if c.failed.Load() {
		return nil, roomsensor.CodeOverloaded.New()
	}
	return c.Store.CurrentDevices(ctx, teamID, q, hours)
}

// replica starts a dashboard over another backend, to which p goes.
func (p *person) replica(t *testing.T, b dashboard.Backend, configure func(*dashboard.Config)) *httptest.Server {
	t.Helper()
	server := p.env.serve(t, b, configure)
	p.url = server.URL
	return server
}

// TestTilesOfManyPages checks that the number of pages does not change the number of reads, and the limit per person.
func TestTilesOfManyPages(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	c := &countingStore{Store: e.store}
	p := e.signIn(t, e.team, roomsensor.Viewer)
	p.replica(t, c, nil)
	e.addDevice(t, e.team, "dev:1", "A", 0)
	var open []*events
	for range 6 {
		s := p.stream(t, e.tilesPath())
		s.untilState(t)
		open = append(open, s)
	}
	refused := p.get(t, e.tilesPath())
	require.Equal(t, http.StatusServiceUnavailable, refused.status)
	require.Equal(t, "60", refused.header.Get("Retry-After"))
	require.Contains(t, refused.text, "You have too many pages of the dashboard open. Close some.")
	other := e.signIn(t, e.team, roomsensor.Viewer)
	other.url = p.url
	open = append(open, other.stream(t, e.tilesPath()))
	open[6].untilState(t)

	before, began := c.reads.Load(), time.Now()
	e.addDevice(t, e.team, "dev:2", "B", 0)
	for _, s := range open {
		for {
			if list, _ := s.untilState(t); len(list) == 1 {
				break
			}
		}
	}
	require.LessOrEqual(t, c.reads.Load()-before, int32(time.Since(began)/time.Second)+2)
}

func TestTilesWithoutDatabase(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	c := &countingStore{Store: e.store}
	p := e.signIn(t, e.team, roomsensor.Viewer)
	p.replica(t, c, nil)
	s := p.stream(t, e.tilesPath())
	s.untilState(t)
	c.failed.Store(true)
	for name := ""; name != "trouble"; {
		name = s.next(t).name
	}
	c.failed.Store(false)
	for name := ""; name != "state"; {
		name = s.next(t).name
	}
}

// TestTilesEnd checks that streams end when the person may no longer see them, and when the process stops.
func TestTilesEnd(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	often := func(cfg *dashboard.Config) { cfg.CheckEvery = 20 * time.Millisecond }
	for name, end := range map[string]func(*testing.T, *person){
		"sign-out": func(t *testing.T, p *person) { t.Helper(); p.post(t, "/sign-out", nil) },
		"disabled": func(t *testing.T, p *person) {
			t.Helper()
			e.exec(t, `UPDATE users SET disabled_at = now() WHERE id = $1`, p.id)
		},
		"no longer member": func(t *testing.T, p *person) {
			t.Helper()
			e.exec(t, `DELETE FROM memberships WHERE user_id = $1`, p.id)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := e.signIn(t, e.team, roomsensor.Viewer)
			p.replica(t, e.store, often)
			s := p.stream(t, e.tilesPath())
			s.untilState(t)
			end(t, p)
			for got := s.next(t); got.name != "end"; got = s.next(t) {
				require.Equal(t, "state", got.name)
			}
			require.Empty(t, s.next(t).name, "the stream has ended")
			line := regexp.MustCompile(`"route":"/teams/:team_id/tiles".*"user_id":"` + p.id.String())
			require.Eventually(t, func() bool { return line.MatchString(e.log.String()) }, proctest.Patience, 10*time.Millisecond)
		})
	}
	t.Run("shutdown", func(t *testing.T) {
		t.Parallel()
		p := e.signIn(t, e.team, roomsensor.Viewer)
		server := p.replica(t, e.store, nil)
		s := p.stream(t, e.tilesPath())
		s.untilState(t)
		require.NoError(t, server.Config.Shutdown(t.Context()))
		for s.next(t).name != "" { //nolint:revive // Until it has ended.
		}
	})
	t.Run("signed out", func(t *testing.T) {
		t.Parallel()
		require.Equal(t, http.StatusSeeOther, e.stranger(t).get(t, e.tilesPath()).status)
	})
}

// TestTilesOfSettings checks that a page hears of other limits.
func TestTilesOfSettings(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	a := e.addDevice(t, e.team, "dev:1", "A", time.Minute)
	e.addReading(t, a, 10*time.Minute, 600, 21)
	p := e.signIn(t, e.team, roomsensor.Viewer)
	p.replica(t, e.store, func(cfg *dashboard.Config) { cfg.CheckEvery = 20 * time.Millisecond })
	s := p.stream(t, e.tilesPath())
	first, _ := s.untilState(t)
	require.NotContains(t, first[0].data["html"], "high")
	before := p.get(t, overviewPath(e.team)).version()
	e.exec(t, `UPDATE teams SET limits = '{"co2_ppm":{"high":{"warn":500}}}' WHERE id = $1`, e.team)
	for {
		if list, _ := s.untilState(t); len(list) == 1 {
			require.Contains(t, list[0].data["html"], "high")
			break
		}
	}
	again, _ := p.stream(t, e.tilesPath()+"?since="+before).untilState(t)
	require.Len(t, again, 1, "of a page that was in the background meanwhile")
}
