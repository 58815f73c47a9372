package main

import (
	"encoding/json"
	"net/http"
	"net/url"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/conformance"
)

// fillLists gives the team 12 devices, and the first of them 12 assignments and 120 readings.
func (f *fleet) fillLists() {
	f.t.Helper()
	f.exec(`INSERT INTO devices (team_id, hardware_id) SELECT $1, 'dev:' || i FROM generate_series(2, 12) i`, f.team)
	f.exec(`INSERT INTO assignments (device_id, type, label, home_or_travel, started_at, ended_at)
		SELECT $1, 'place', 'Room', 'home', now() - (i + 1) * INTERVAL '1 day', now() - i * INTERVAL '1 day'
		FROM generate_series(1, 12) i`, f.device)
	f.exec(`INSERT INTO readings (device_id, bucket_at, co2_ppm)
		SELECT $1, time_bucket('5 minutes', now()) - i * INTERVAL '10 minutes', 400 FROM generate_series(1, 120) i`, f.device)
}

// burst is what arrives between two pages: old and new readings, and a device.
func (f *fleet) burst(i int) {
	f.t.Helper()
	f.exec(`INSERT INTO readings (device_id, bucket_at, co2_ppm)
		SELECT $1, time_bucket('5 minutes', now()) - (2 * i + 1) * INTERVAL '5 minutes', 500 FROM generate_series(20 * $2, 20 * $2 + 19) i
		ON CONFLICT DO NOTHING`, f.device, i)
	f.exec(`INSERT INTO devices (team_id, hardware_id) VALUES ($1, 'dev:' || $2::int)`, f.team, 100+i)
}

// item is one of any list; what tells it from others is set.
type item struct {
	DeviceID     string  `json:"device_id"`
	AssignmentID string  `json:"assignment_id"`
	BucketAt     string  `json:"bucket_at"`
	CO2          float64 `json:"co2_ppm"`
}

func (i *item) id() string { return i.AssignmentID + i.BucketAt + i.DeviceID }

// page reads a page and the way to the next one.
func (f *fleet) page(r *replica, path, query string) (items []item, next string) {
	f.t.Helper()
	got := r.get(path+"?"+query, f.key)
	require.NoError(f.t, got.err)
	require.Equal(f.t, http.StatusOK, got.status, got.body)
	var list struct {
		Data       []item  `json:"data"`
		NextCursor *string `json:"next_cursor"`
	}
	require.NoError(f.t, json.Unmarshal([]byte(got.body), &list))
	if list.NextCursor != nil {
		next = "cursor=" + url.QueryEscape(*list.NextCursor)
	}
	return list.Data, next
}

// bounce ends a replica, in order or not, and starts it again.
func (f *fleet) bounce(i int) {
	f.t.Helper()
	r := f.replicas[i%2]
	if i == 0 {
		require.NoError(f.t, r.Signal(syscall.SIGTERM))
		<-r.Done()
	} else {
		r.Kill()
	}
	r.start()
}

// walk is one on its way through a list.
type walk struct {
	path, query string // query is empty at the end
	there       []string
	walked      []string
}

// walks begin with what is there in each list.
func (f *fleet) walks() []*walk {
	f.t.Helper()
	device := "/devices/" + f.device
	walks := []*walk{
		{path: "/devices", query: "limit=3"},
		{path: "/devices/current", query: "limit=3"},
		{path: device + "/assignments", query: "limit=3"},
		{path: device + "/readings", query: "last=24h&limit=30"},
	}
	for _, w := range walks {
		all, next := f.page(f.replicas[0], w.path, "")
		require.Empty(f.t, next)
		for _, one := range all {
			w.there = append(w.there, one.id())
		}
	}
	return walks
}

// goOn reads one page of each walk, and reports whether any goes on.
func (f *fleet) goOn(r *replica, walks []*walk) bool {
	f.t.Helper()
	more := false
	for _, w := range walks {
		if w.query == "" {
			continue
		}
		var items []item
		items, w.query = f.page(r, w.path, w.query)
		for _, one := range items {
			w.walked = append(w.walked, one.id())
		}
		more = true
	}
	return more
}

// requireWhole holds a walk to what was there before it: each once, in order.
func (w *walk) requireWhole(t *testing.T) {
	t.Helper()
	at := map[string]int{}
	for i, id := range w.walked {
		require.NotContains(t, at, id, "%s: twice", w.path)
		at[id] = i
	}
	last := -1
	for _, id := range w.there {
		require.Contains(t, at, id, "%s: left out", w.path)
		require.Greater(t, at[id], last, "%s: out of order", w.path)
		last = at[id]
	}
}

// Decisions 11 and 13: any replica goes on with a walk, also one that was started meanwhile.
func TestWalksGoOnOverReplicasAndRestarts(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 11.6")
	f := launch(t)
	f.fillLists()
	walks := f.walks()
	for i := 0; f.goOn(f.replicas[i%2], walks); i++ {
		f.burst(i)
		if i < 2 {
			f.bounce(i)
		}
	}
	for _, w := range walks {
		w.requireWhole(t)
	}
}
