package localcopy_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/client"
	"roomsensor/client/export"
	"roomsensor/client/localcopy"
	"roomsensor/test/apitest"
	"roomsensor/test/copytest"
	"roomsensor/test/dbtest"
	"roomsensor/test/harness"
	"roomsensor/test/proctest"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

const (
	// patience limits the wait for a change to become readable (A5.9).
	patience  = proctest.Patience
	pollEvery = 100 * time.Millisecond
)

func connect(t *testing.T, url, key string) *client.Client {
	t.Helper()
	c, err := client.New(url, key)
	require.NoError(t, err)
	return c
}

// anyName is a name of a file whose characters mean something in patterns, URIs, format strings or SQL.
const anyName = `Team [A]* \?#%41%s:'";--.db`

// table returns the readings of the service.
func table(t *testing.T, a *apitest.Service) []string {
	t.Helper()
	return copytest.Table(t, a.SQL, a.Team)
}

// once runs a copy until it has caught up.
func (k kind) once(t *testing.T, c *client.Client, path string, options localcopy.Options) (*localcopy.Result, error) {
	t.Helper()
	s, err := k.open(t.Context(), path)
	require.NoError(t, err)
	defer func() { require.NoError(t, s.Close()) }()
	options.Once = true
	return localcopy.Run(t.Context(), c, s, options)
}

// awaitEqual runs a copy until it equals the table.
func (k kind) awaitEqual(t *testing.T, a *apitest.Service, c *client.Client, path string) {
	t.Helper()
	k.await(t, c, path, table(t, a))
}

// await runs a copy until it has these readings.
func (k kind) await(t *testing.T, c *client.Client, path string, want []string) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		_, err := k.once(t, c, path, localcopy.Options{})
		require.NoError(t, err)
		got := k.read(t, path)
		if slices.Equal(want, got) {
			return
		}
		if time.Now().After(deadline) {
			require.Equal(t, want, got)
		}
		<-time.After(pollEvery)
	}
}

// A copy has all readings, and then all changes: new and late readings, and corrections.
func TestRun(t *testing.T) {
	t.Parallel()
	for name, k := range kinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := apitest.Start(t)
			devices := a.AddDevices(t, 3)
			a.AddReadings(t, devices, newYear, 200, 7*time.Hour)
			c := connect(t, a.URL, a.Key)
			path := filepath.Join(t.TempDir(), anyName)
			result, err := k.once(t, c, path, localcopy.Options{Load: func(s export.Status) {
				require.Equal(t, newYear, s.From, "the first load begins with the first reading")
			}})
			require.NoError(t, err)
			require.EqualValues(t, 600, result.Imported)
			require.Equal(t, a.Team.String(), result.TeamID)
			require.Equal(t, table(t, a), k.read(t, path))

			a.AddReadings(t, devices[:2], newYear.AddDate(-1, 0, 0), 50, time.Hour) // Late.
			a.Exec(t, `UPDATE readings SET co2_ppm = 444.5, lux = NULL, ingested_at = now() WHERE bucket_at > $1`, newYear.AddDate(0, 1, 0))
			k.awaitEqual(t, a, c, path)

			from := newYear.AddDate(0, 0, 20)
			for range 2 {
				a.DeleteReadings(t, devices[0], from, newYear.AddDate(0, 0, 40))   // In two months.
				a.AddReadings(t, devices[:1], from.Add(time.Hour), 3, 7*time.Hour) // Stored again.
				k.awaitEqual(t, a, c, path)
			}
		})
	}
}

// A run that follows stores changes as they arrive, and ends exact when its context ends.
func TestRunFollows(t *testing.T) {
	t.Parallel()
	k := kinds["sqlite"]
	a := apitest.Start(t)
	devices := a.AddDevices(t, 1)
	a.AddReadings(t, devices, newYear, 10, time.Hour)
	a.Exec(t, `UPDATE readings SET ingested_at = $1`, newYear) // Before the start of the feed.
	path := filepath.Join(t.TempDir(), "copy")
	s, err := k.open(t.Context(), path)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	added := false
	result, err := localcopy.Run(ctx, connect(t, a.URL, a.Key), s, localcopy.Options{Progress: func(status localcopy.Status) {
		switch {
		case status.Phase != localcopy.Following:
		case !added && status.CaughtUp:
			added = true
			a.AddReadings(t, devices, newYear.AddDate(0, 1, 0), 5, time.Hour)
		case status.Changes >= 5:
			cancel()
		}
	}})
	require.ErrorIs(t, err, context.Canceled)
	require.EqualValues(t, 5, result.Changes)
	require.NoError(t, s.Close())
	require.Equal(t, table(t, a), k.read(t, path))
}

// A copy goes on with another key, and after its position was lost.
func TestRunResynchronizes(t *testing.T) {
	t.Parallel()
	k := kinds["sqlite"]
	a := apitest.Start(t)
	devices := a.AddDevices(t, 1)
	a.AddReadings(t, devices, newYear, 10, time.Hour)
	path := filepath.Join(t.TempDir(), "copy")
	_, err := k.once(t, connect(t, a.URL, a.Key), path, localcopy.Options{})
	require.NoError(t, err)

	a.AddReadings(t, devices, newYear.AddDate(0, 1, 0), 7, time.Hour)
	other := connect(t, a.URL, a.NewKey(t))
	k.awaitEqual(t, a, other, path)

	// Without a time from which to read the feed again, it loads everything again.
	s, err := k.open(t.Context(), path)
	require.NoError(t, err)
	state, _, err := s.State(t.Context())
	require.NoError(t, err)
	state.Position, state.CaughtUpAt = "lost", time.Time{}
	require.NoError(t, s.Commit(t.Context(), localcopy.Changes{}, state))
	require.NoError(t, s.Close())
	a.AddReadings(t, devices, newYear.AddDate(0, 2, 0), 3, time.Hour)
	result, err := k.once(t, other, path, localcopy.Options{})
	require.NoError(t, err)
	require.EqualValues(t, 20, result.Imported)
	k.awaitEqual(t, a, other, path)

	// A service that does not know a recent position was restored, and may lack readings of the copy.
	s, err = k.open(t.Context(), path)
	require.NoError(t, err)
	state, _, err = s.State(t.Context())
	require.NoError(t, err)
	state.Position = "lost"
	require.NoError(t, s.Commit(t.Context(), localcopy.Changes{}, state))
	require.NoError(t, s.Close())
	_, err = k.once(t, other, path, localcopy.Options{})
	require.ErrorIs(t, err, localcopy.ErrForgotten)
}

// A file of the first load has as many readings as the service counted, or the copy is not complete.
func TestRunCountsLoad(t *testing.T) {
	t.Parallel()
	for name, k := range kinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := apitest.Start(t)
			c := connect(t, a.URL, a.Key)
			path := filepath.Join(t.TempDir(), "copy")
			_, err := k.once(t, c, path, localcopy.Options{})
			require.NoError(t, err)
			s, err := k.open(t.Context(), path)
			require.NoError(t, err)
			require.NoError(t, os.Mkdir(s.LoadDir(), 0o700))
			require.NoError(t, os.WriteFile(filepath.Join(s.LoadDir(), "2026-01.csv"), []byte(
				"bucket_at,device_id,device_name,co2_ppm,temp_c,humidity_pct,lux,spl_db,x,ingested_at\n"+
					"2026-01-01T00:00:00Z,00000000-0000-0000-0000-000000000001,,,,,,,,2026-01-01T00:00:00Z\n"), 0o600))
			state, _, err := s.State(t.Context())
			require.NoError(t, err)
			state.Phase, state.Files = localcopy.Importing, []localcopy.LoadedFile{{Name: "2026-01.csv", Rows: 2}}
			require.NoError(t, s.Commit(t.Context(), localcopy.Changes{}, state))
			require.NoError(t, s.Close())
			_, err = k.once(t, c, path, localcopy.Options{})
			require.ErrorContains(t, err, "the file has 1 readings, and the service counted 2")
		})
	}
}

// A copy is of one team, of one period and of one version.
func TestRunRefuses(t *testing.T) {
	t.Parallel()
	k := kinds["parquet"]
	a := apitest.Start(t)
	devices := a.AddDevices(t, 1)
	a.AddReadings(t, devices, newYear, 10, time.Hour)
	path := filepath.Join(t.TempDir(), "copy")
	from := localcopy.Options{From: newYear.Add(5 * time.Hour)}
	result, err := k.once(t, connect(t, a.URL, a.Key), path, from)
	require.NoError(t, err)
	require.EqualValues(t, 5, result.Imported)
	_, err = k.once(t, connect(t, a.URL, a.Key), path, localcopy.Options{From: newYear})
	require.ErrorContains(t, err, "the copy begins at 2026-01-01T05:00:00Z")
	team, err := harness.InsertTeam(t.Context(), a.SQL, "Other", nil)
	require.NoError(t, err)
	keys, err := harness.InsertAPIKeys(t.Context(), a.SQL, team, 1)
	require.NoError(t, err)
	_, err = k.once(t, connect(t, a.URL, keys[0]), path, localcopy.Options{})
	require.ErrorContains(t, err, "the copy is of team "+a.Team.String())
	s, err := k.open(t.Context(), path)
	require.NoError(t, err)
	state, _, err := s.State(t.Context())
	require.NoError(t, err)
	for _, version := range []int{state.Version - 1, state.Version + 1} {
		state.Version = version
		require.NoError(t, s.Commit(t.Context(), localcopy.Changes{}, state))
		_, err = localcopy.Run(t.Context(), connect(t, a.URL, a.Key), s, localcopy.Options{Once: true})
		require.ErrorContains(t, err, "another version of this program ("+strconv.Itoa(version)+"). Remove the copy")
	}
	require.NoError(t, s.Close())
}

// A copy has no reading from before its start, also none that arrives later.
func TestRunFrom(t *testing.T) {
	t.Parallel()
	k := kinds["sqlite"]
	a := apitest.Start(t)
	devices := a.AddDevices(t, 1)
	a.AddReadings(t, devices, newYear, 10, time.Hour)
	path := filepath.Join(t.TempDir(), "copy")
	c := connect(t, a.URL, a.Key)
	_, err := k.once(t, c, path, localcopy.Options{From: newYear})
	require.NoError(t, err)
	want := table(t, a)
	a.AddReadings(t, devices, newYear.AddDate(0, 0, -1), 24, time.Hour)
	a.AddReadings(t, devices, newYear.Add(10*time.Hour), 1, time.Hour)
	want = append(want, table(t, a)[34:]...)
	k.await(t, c, path, want)
}

// A copy has the assignments of its whole period, each once, as they were after it had caught up.
func TestRunAssignments(t *testing.T) {
	t.Parallel()
	for name, k := range kinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := apitest.Start(t)
			devices := a.AddDevices(t, 3)
			a.AddReadings(t, devices, newYear, 10, time.Hour)
			// Those of ten years take two windows, which the first one of the second device overlaps both.
			a.Exec(t, `INSERT INTO assignments (device_id, type, label, external_ref, home_or_travel, started_at, ended_at) VALUES
				($1, 'athlete', 'Kim Lee', 'crm-7', 'travel', '2014-05-01Z', '2015-01-01 00:00:01Z'),
				($1, 'athlete', 'Ana', 'crm-8', 'home', '2020-05-01Z', '2026-01-01 05:00Z'),
				($1, 'place', 'Gym', NULL, 'home', '2026-01-01 05:00Z', NULL),
				($2, 'athlete', 'Kim Lee', 'crm-7', 'home', '2015-05-01Z', NULL),
				($3, 'place', 'Early', NULL, 'home', '2013-01-01Z', '2014-12-31Z')`, devices[0], devices[1], devices[2])
			c := connect(t, a.URL, a.Key)
			dir := t.TempDir()
			paths := map[string]localcopy.Options{
				filepath.Join(dir, "all"): {}, filepath.Join(dir, "part"): {From: newYear.Add(5 * time.Hour)},
			}
			sync := func(lines ...int) {
				for path, options := range paths {
					began := time.Now()
					result, err := k.once(t, c, path, options)
					require.NoError(t, err)
					require.WithinRange(t, result.ListsAt, began.Truncate(0), time.Now())
					from := options.From
					if from.IsZero() {
						from = export.Earliest
					}
					want := copytest.Assignments(t, a.SQL, a.Team, from)
					require.Equal(t, want, k.assignments(t, path))
					require.Contains(t, lines, len(want))
				}
			}
			sync(4, 2)
			// Corrections, an erasure and a deletion arrive with the next run.
			a.Exec(t, `UPDATE assignments SET label = 'erased person', external_ref = NULL WHERE external_ref = 'crm-7'`)
			a.Exec(t, `UPDATE assignments SET ended_at = '2026-01-01 09:00Z' WHERE label = 'Gym'`)
			a.Exec(t, `DELETE FROM assignments WHERE label = 'Ana'`)
			a.Exec(t, `UPDATE devices SET display_name = NULL`)
			sync(3, 2)
		})
	}
}

// The lists are read when the copy has caught up, so that the assignments of all of its readings are there. Without an
// answer, the old ones stay.
func TestRunReadsListsLast(t *testing.T) {
	t.Parallel()
	k := kinds["sqlite"]
	a := apitest.Start(t)
	devices := a.AddDevices(t, 1)
	a.AddReadings(t, devices, newYear, 10, time.Hour)
	a.Exec(t, `INSERT INTO assignments (device_id, type, label, started_at) VALUES ($1, 'place', 'Gym', '2026-01-01Z')`, devices[0])
	var requests []string
	refuse := false
	c := connect(t, apitest.Proxy(t, a.URL, func(_ int64, w http.ResponseWriter, r *http.Request) bool {
		requests = append(requests, r.URL.Path)
		if refuse && r.URL.Path == "/v1/assignments" {
			apitest.Fail(w, http.StatusForbidden, "insufficient_scope")
			return true
		}
		return false
	}), a.Key)
	path := filepath.Join(t.TempDir(), "copy")
	first, err := k.once(t, c, path, localcopy.Options{Parallel: 1})
	require.NoError(t, err)
	n := len(requests)
	require.Equal(t, []string{"/v1/readings/changes", "/v1/devices", "/v1/assignments", "/v1/assignments"}, requests[n-4:])

	refuse = true
	a.Exec(t, `UPDATE assignments SET label = 'Hall'`)
	a.Exec(t, `UPDATE devices SET display_name = 'Hall'`)
	before := k.assignments(t, path)
	notes := ""
	second, err := k.once(t, c, path, localcopy.Options{Progress: func(s localcopy.Status) { notes += s.Note }})
	require.NoError(t, err)
	require.Contains(t, notes, "the lists of devices and assignments are not up to date: ")
	require.Equal(t, before, k.assignments(t, path))
	require.True(t, first.ListsAt.Equal(second.ListsAt))
}

// A first load that is interrupted after each part continues.
func TestRunLoadInterrupted(t *testing.T) {
	t.Parallel()
	k := kinds["sqlite"]
	a := apitest.Start(t)
	devices := a.AddDevices(t, 2)
	a.AddReadings(t, devices, newYear.AddDate(0, -3, 0), 300, 12*time.Hour)
	path := filepath.Join(t.TempDir(), "copy")
	c := connect(t, a.URL, a.Key)
	runs := 0
	for done := false; !done; runs++ {
		s, err := k.open(t.Context(), path)
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		before := -1
		_, err = localcopy.Run(ctx, c, s, localcopy.Options{
			From: newYear.AddDate(0, -3, 0), Once: true, Parallel: 1,
			Load: func(status export.Status) {
				if before < 0 {
					before = status.Done
				}
				if status.Done > before {
					cancel()
				}
			},
			Progress: func(status localcopy.Status) {
				if status.Phase == localcopy.Importing && status.FilesDone > 0 && runs%2 == 0 {
					cancel()
				}
			},
		})
		cancel()
		require.NoError(t, s.Close())
		if err != nil {
			require.ErrorIs(t, err, context.Canceled)
		}
		done = err == nil
	}
	require.Greater(t, runs, 5)
	k.awaitEqual(t, a, c, path)
}

// A copy that was removed while it loaded starts over with another period.
func TestRunLoadRemoved(t *testing.T) {
	t.Parallel()
	k := kinds["sqlite"]
	a := apitest.Start(t)
	devices := a.AddDevices(t, 1)
	a.AddReadings(t, devices, newYear, 10, time.Hour)
	path := filepath.Join(t.TempDir(), "copy")
	c := connect(t, a.URL, a.Key)
	s, err := k.open(t.Context(), path)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	_, err = localcopy.Run(ctx, c, s, localcopy.Options{Load: func(export.Status) { cancel() }})
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, s.Close())
	require.NoError(t, os.Remove(path))
	_, err = k.once(t, c, path, localcopy.Options{From: newYear.Add(time.Hour)})
	require.NoError(t, err)
	require.Len(t, k.read(t, path), 9)
}

// caughtUpStore is a store of a copy that follows. A commit takes a long time.
type caughtUpStore struct{ localcopy.Store }

func (caughtUpStore) State(context.Context) (localcopy.State, bool, error) {
	return localcopy.State{Version: 2, Phase: localcopy.Following, Position: "x"}, true, nil
}

func (caughtUpStore) Batch() (int, time.Duration) { return 0, 0 }

func (caughtUpStore) Commit(context.Context, localcopy.Changes, localcopy.State) error {
	<-time.After(time.Hour)
	return nil
}

func (caughtUpStore) SetLists(context.Context, localcopy.Lists, localcopy.State) error { return nil }

// cannedService answers the requests of a copy that follows: the feed has two pages, or does not answer.
type cannedService struct{ silent bool }

func (s cannedService) RoundTrip(r *http.Request) (*http.Response, error) {
	body := `{"data": []}`
	switch {
	case r.URL.Path == "/v1/team":
		body = `{}`
	case r.URL.Path == "/v1/readings/changes" && s.silent:
		<-r.Context().Done()
		return nil, r.Context().Err()
	case r.URL.Path == "/v1/readings/changes":
		body = fmt.Sprintf(`{"next_cursor": "y", "caught_up": %t}`, r.URL.Query().Get("cursor") == "y")
	}
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(body))}, nil
}

// A run with Once ends if the service does not answer, and not while the copy is written.
func TestRunPatience(t *testing.T) {
	t.Parallel()
	for _, silent := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c, err := client.New("http://service", "rsk_x",
				client.WithHTTPClient(&http.Client{Transport: cannedService{silent}}))
			require.NoError(t, err)
			began := time.Now()
			_, err = localcopy.Run(t.Context(), c, caughtUpStore{}, localcopy.Options{Once: true})
			if silent {
				require.ErrorContains(t, err, "the service did not answer for 15m0s")
				require.Equal(t, 15*time.Minute, time.Since(began))
			} else {
				require.NoError(t, err)
			}
		})
	}
}
