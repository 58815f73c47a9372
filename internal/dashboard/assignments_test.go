package dashboard_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store"
)

// operator returns a store with the rights of the commands.
func (e *env) operator(t testing.TB) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), e.sql.Config().ConnString(), store.Operator)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

// addNamedDevice creates a device with a name and returns its id.
func (e *env) addNamedDevice(t testing.TB, hardwareID, name string, tags map[string]string) uuid.UUID {
	t.Helper()
	d, err := e.operator(t).CreateDevice(t.Context(), roomsensor.NewDevice{
		TeamID: e.team, HardwareID: hardwareID, DisplayName: &name, Metadata: tags,
	}, e.now)
	require.NoError(t, err)
	return d.ID
}

// addAssignment starts an assignment with a label and returns its id.
func (e *env) addAssignment(t testing.TB, device uuid.UUID, label string, at time.Time) uuid.UUID {
	t.Helper()
	return e.start(t, roomsensor.Assignment{
		DeviceID: device, Type: roomsensor.Place, Label: label, HomeOrTravel: roomsensor.Home, StartedAt: at,
	})
}

// start starts an assignment and returns its id.
func (e *env) start(t testing.TB, a roomsensor.Assignment) uuid.UUID {
	t.Helper()
	done, err := e.store.ChangeAssignments(t.Context(), e.team, roomsensor.StartAssignment(a), nil)
	require.NoError(t, err)
	return done.After[0].ID
}

// TestAssignments checks that an editor starts, transfers and ends an assignment, also in the past.
func TestAssignments(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.exec(t, `UPDATE teams SET time_zone = 'Europe/Berlin'`)
	device := e.addNamedDevice(t, "dev:1", "Room <1>", nil)
	path := "/teams/" + e.team.String() + "/assignments"
	p := e.signIn(t, e.team, roomsensor.Editor)
	open := func() roomsensor.Assignment {
		d, err := e.store.Device(t.Context(), e.team, device)
		require.NoError(t, err)
		require.NotNil(t, d.ActiveAssignment)
		a, err := e.store.Assignment(t.Context(), e.team, d.ActiveAssignment.ID)
		require.NoError(t, err)
		return a
	}
	form := url.Values{"label": {"Anna <b>"}, "type": {"athlete"}, "home_or_travel": {"travel"}, "at": {"2026-11-20T08:00"}}
	started := p.follow(t, p.post(t, path+"/start/"+device.String(), form))
	require.Contains(t, started.text, "Started Anna <b> on Room <1> at Fri 20 Nov 2026, 08:00.")
	first := open()
	require.Equal(t, time.Date(2026, 11, 20, 7, 0, 0, 0, time.UTC), first.StartedAt)
	require.Equal(t, roomsensor.Athlete, first.Type)
	require.Equal(t, roomsensor.Travel, first.HomeOrTravel)
	require.Nil(t, first.ExternalRef)

	label, _ := started.find(".lane svg[role=img]").Attr("aria-label")
	require.Equal(t, "Anna <b>, athlete, since Fri 20 Nov 2026, 08:00", label)
	require.Equal(t, 1, started.find(".lane svg.open").Length())
	require.Contains(t, started.find(".table").Text(), "Anna <b>")

	form = url.Values{"label": {"Bea"}, "type": {"athlete"}, "home_or_travel": {"home"}, "external_ref": {"crm-7"}, "at": {"2026-11-21T08:00"}}
	moved := p.follow(t, p.post(t, path+"/"+first.ID.String()+"/transfer", form))
	require.Contains(t, moved.text, "Transferred Room <1> from Anna <b> to Bea at Sat 21 Nov 2026, 08:00.")
	second := open()
	require.Equal(t, "crm-7", *second.ExternalRef)
	first, err := e.store.Assignment(t.Context(), e.team, first.ID)
	require.NoError(t, err)
	require.Equal(t, second.StartedAt, *first.EndedAt)

	ended := p.follow(t, p.post(t, path+"/"+second.ID.String()+"/end", url.Values{}))
	require.Contains(t, ended.text, "Ended Bea on Room <1>.")
	second, err = e.store.Assignment(t.Context(), e.team, second.ID)
	require.NoError(t, err)
	require.Equal(t, e.now, *second.EndedAt)

	entries, err := e.store.TeamAudit(t.Context(), e.team, roomsensor.AuditQuery{Object: second.ID.String(), Limit: 1})
	require.NoError(t, err)
	require.Equal(t, roomsensor.ActorPerson, entries[0].Actor.Kind)
}

// TestAssignmentRefusals checks the sentences about fields that are not valid, and about conflicts.
func TestAssignmentRefusals(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	device := e.addNamedDevice(t, "dev:1", "Hall", nil)
	path := "/teams/" + e.team.String() + "/assignments"
	p := e.signIn(t, e.team, roomsensor.Editor)
	valid := func(changes ...string) url.Values {
		form := url.Values{"label": {"x"}, "type": {"place"}, "home_or_travel": {"home"}}
		for change := range slices.Chunk(changes, 2) {
			form.Set(change[0], change[1])
		}
		return form
	}
	start := path + "/start/" + device.String()
	refuses := func(path string, form url.Values, sentence string) {
		t.Helper()
		got := p.post(t, path, form)
		require.Equal(t, http.StatusUnprocessableEntity, got.status)
		require.Contains(t, got.text, sentence)
	}
	refuses(start, valid("label", ""), "The label must not be empty.")
	refuses(start, valid("type", "room"), "Choose place or athlete.")
	refuses(start, valid("home_or_travel", "away"), "Choose home or travel.")
	refuses(start, valid("external_ref", "a\nb"), "The reference must not contain control characters")
	refuses(start, valid("at", "now"), "Enter a date and a time")
	refuses(start, valid("at", "2026-11-22T14:06"), "This time is in the future.")
	refuses(start, valid("at", "0026-11-20T14:06"), "This time is before 2015")

	began := time.Date(2026, 11, 10, 8, 0, 30, 0, time.UTC)
	first := e.addAssignment(t, device, "Anna", began)
	refuses(start, valid(), "Hall has the open assignment “Anna” since Tue 10 Nov 2026, 08:00:30. End or transfer that one.")
	end := path + "/" + first.String() + "/end"
	refuses(end, url.Values{"at": {"2026-11-10T08:00"}}, "“Anna” started on Tue 10 Nov 2026, 08:00:30. Enter a later time.")
	require.Equal(t, http.StatusSeeOther, p.post(t, end, url.Values{"at": {"2026-11-12T08:00"}}).status)
	refuses(end, url.Values{}, "“Anna” ended already, on Thu 12 Nov 2026, 08:00.")
	refuses(path+"/"+first.String()+"/transfer", valid(), "“Anna” ended already")
	refuses(start, valid("at", "2026-11-11T08:00"),
		"Hall had the assignment “Anna” from Tue 10 Nov 2026, 08:00:30 to Thu 12 Nov 2026, 08:00. Enter its end or a later time.")
}

// TestAssignmentRoles checks that viewers see and do not change, and that ids of another team do not exist.
func TestAssignmentRoles(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	device := e.addNamedDevice(t, "dev:1", "Hall", nil)
	id := e.addAssignment(t, device, "Anna", e.now.Add(-time.Hour))
	other := e.addTeam(t, "Other")
	viewer, stranger := e.signIn(t, e.team, roomsensor.Viewer), e.signIn(t, other, roomsensor.Admin)
	path := "/teams/" + e.team.String() + "/assignments"
	got := viewer.get(t, path)
	require.Equal(t, http.StatusOK, got.status)
	require.Contains(t, got.text, "Anna")
	require.Zero(t, got.find(".actions").Length())
	for _, action := range []string{
		"/start/" + device.String(), "/" + id.String() + "/transfer", "/" + id.String() + "/edit", "/" + id.String() + "/end",
		"/" + id.String() + "/delete",
	} {
		require.Equal(t, http.StatusForbidden, viewer.get(t, path+action).status)
		require.Equal(t, http.StatusForbidden, viewer.post(t, path+action, nil).status)
		require.Equal(t, http.StatusNotFound, stranger.post(t, path+action, nil).status)
		foreign := "/teams/" + other.String() + "/assignments" + action
		require.Equal(t, http.StatusNotFound, stranger.get(t, foreign).status)
		require.Equal(t, http.StatusNotFound, stranger.post(t, foreign, nil).status)
	}
	require.Contains(t, stranger.get(t, "/teams/"+other.String()+"/assignments").text, "This team has no devices yet.")

	require.Equal(t, http.StatusForbidden, viewer.post(t, path+"/move", nil).status)
	move := url.Values{"who": {id.String()}, "to": {device.String()}}
	require.Contains(t, stranger.post(t, "/teams/"+other.String()+"/assignments/move", move).text, "Choose the person who moves.")
}

// TestAssignmentFilter checks the filters and the pages of the timeline.
func TestAssignmentFilter(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	for i := range 60 {
		e.addNamedDevice(t, fmt.Sprintf("dev:%d", 100+i), fmt.Sprintf("Room %02d", i), map[string]string{"floor": fmt.Sprint(i % 2)})
	}
	p := e.signIn(t, e.team, roomsensor.Viewer)
	path := "/teams/" + e.team.String() + "/assignments"
	for query, want := range map[string]int{
		"": 50, "?page=2": 10, "?page=3": 0, "?q=room+0": 10, "?tag=floor%3D1": 30, "?q=none": 0, "?days=90&last=2026-01-01": 50,
	} {
		got := p.get(t, path+query)
		require.Equal(t, http.StatusOK, got.status)
		require.Equal(t, want, got.find(".lane").Length(), query)
	}
	require.Contains(t, p.get(t, path+"?page=2").text, "51 to 60 of 60 devices")
	for query, sentence := range map[string]string{
		"?tag=floor": "Write a tag as KEY=VALUE", "?last=soon": "Choose a last day", "?last=1999-01-01": "Choose a last day",
		"?page=0": "There is no such page.", "?page=1001": "There is no such page.", "?q=none": "No device matches.",
	} {
		require.Contains(t, p.get(t, path+query).text, sentence, query)
	}
}
