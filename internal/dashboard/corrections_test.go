package dashboard_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/PuerkitoBio/goquery"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
)

// athlete returns an assignment of an athlete.
func athlete(device uuid.UUID, label string, at time.Time) roomsensor.Assignment {
	return roomsensor.Assignment{
		DeviceID: device, Type: roomsensor.Athlete, Label: label, HomeOrTravel: roomsensor.Home, StartedAt: at,
	}
}

// fields returns the fields of the only form in the content of a page, as a browser sends them.
func (p *page) fields() url.Values {
	form := url.Values{}
	p.find("main form input[name], main form select").Each(func(_ int, field *goquery.Selection) {
		name, _ := field.Attr("name")
		value, _ := field.Attr("value")
		if field.Is("select") {
			value, _ = field.Find("option[selected]").Attr("value")
		}
		if kind, _ := field.Attr("type"); kind != "checkbox" {
			form.Set(name, value)
		}
	})
	return form
}

// requirePreview checks that a page asks for a confirmation, with some sentences, and returns its form.
func requirePreview(t *testing.T, got *page, sentences ...string) url.Values {
	t.Helper()
	require.Equal(t, http.StatusOK, got.status, got.text)
	for _, sentence := range sentences {
		require.Contains(t, got.text, sentence)
	}
	form := got.fields()
	require.NotEmpty(t, form.Get("confirm"))
	return form
}

// assignment returns what is stored of an assignment.
func (e *env) assignment(t testing.TB, id uuid.UUID) roomsensor.Assignment {
	t.Helper()
	a, err := e.store.Assignment(t.Context(), e.team, id)
	require.NoError(t, err)
	return a
}

// TestEditAssignment checks that an editor corrects an assignment that has ended, after a preview with the nights that
// change, and deletes it.
func TestEditAssignment(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.exec(t, `UPDATE teams SET time_zone = 'Europe/Berlin'`)
	device := e.addNamedDevice(t, "dev:1", "Dorm 14", nil)
	id := e.start(t, athlete(device, "Ana Ruis", time.Date(2026, 11, 10, 8, 0, 30, 0, time.UTC)))
	_, err := e.store.ChangeAssignments(t.Context(), e.team, roomsensor.EndAssignment(id, e.now.Add(-time.Hour)), nil)
	require.NoError(t, err)
	stored := e.assignment(t, id)
	p := e.signIn(t, e.team, roomsensor.Editor)
	assignments := "/teams/" + e.team.String() + "/assignments"
	path := assignments + "/" + id.String() + "/edit"
	require.Equal(t, 1, p.get(t, assignments).find(`.table a[href="`+path+`"]`).Length())

	form := p.get(t, path).fields()
	require.Equal(t, "2026-11-10T09:00", form.Get("started_at"))
	form.Set("label", "Ana Ruiz")
	form.Set("reason", "misspelt")
	preview := p.post(t, path, form)
	confirmed := requirePreview(t, preview, "LabelAna RuisAna Ruiz", "12 nights move from Ana Ruis to Ana Ruiz.")
	require.NotContains(t, preview.text, "StartTue", "the seconds stay")
	require.Equal(t, stored, e.assignment(t, id), "a preview changes nothing")

	back := url.Values{"back": {"1"}}
	for name := range confirmed {
		back.Set(name, confirmed.Get(name))
	}
	require.Equal(t, "Ana Ruiz", p.post(t, path, back).fields().Get("label"))
	require.Contains(t, p.follow(t, p.post(t, path, confirmed)).text, "Changed Ana Ruis on Dorm 14.")
	stored.Label = "Ana Ruiz"
	require.Equal(t, stored, e.assignment(t, id))
	entries, err := e.store.TeamAudit(t.Context(), e.team, roomsensor.AuditQuery{Object: id.String(), Limit: 1})
	require.NoError(t, err)
	require.Equal(t, "misspelt", entries[0].Reason)
	require.Contains(t, e.signIn(t, e.team, roomsensor.Admin).get(t, "/teams/"+e.team.String()+"/audit").text, "misspelt")

	form = p.get(t, path).fields()
	form.Set("ended_at", "")
	form.Set("started_at", "2020-11-10T09:00")
	confirmed = requirePreview(t, p.post(t, path, form), "EndSun 22 Nov 2026, 14:05open", "Ana Ruiz starts on Tue 10 Nov 2020, 09:00",
		"2191 nights get the assignment Ana Ruiz.")
	require.Equal(t, http.StatusSeeOther, p.post(t, path, confirmed).status)
	require.Nil(t, e.assignment(t, id).EndedAt)

	path = assignments + "/" + id.String() + "/delete"
	confirmed = requirePreview(t, p.get(t, path), "nights of Ana Ruiz lose the assignment",
		"Notes about the person that belong to this assignment are deleted too.")
	confirmed.Set("reason", "a\nb")
	require.Contains(t, p.post(t, path, confirmed).text, "The reason must not contain control characters")
	confirmed.Set("reason", "")
	require.Contains(t, p.follow(t, p.post(t, path, confirmed)).text, "Deleted Ana Ruiz on Dorm 14.")
	gone := p.post(t, path, confirmed)
	require.Equal(t, http.StatusNotFound, gone.status)
	require.Contains(t, gone.text, p.email+" deleted the assignment “Ana Ruiz” on")
}

// TestEditAssignmentRefusals checks the sentences about what an edit contradicts.
func TestEditAssignmentRefusals(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	device := e.addNamedDevice(t, "dev:1", "Hall", nil)
	day := func(n int) time.Time { return time.Date(2026, 11, n, 8, 0, 0, 0, time.UTC) }
	var ids []uuid.UUID
	for i, label := range []string{"Anna", "Bea", "Cy"} {
		ids = append(ids, e.addAssignment(t, device, label, day(10+2*i)))
		if label != "Cy" {
			_, err := e.store.ChangeAssignments(t.Context(), e.team, roomsensor.EndAssignment(ids[i], day(12+2*i)), nil)
			require.NoError(t, err)
		}
	}
	p := e.signIn(t, e.team, roomsensor.Editor)
	refuses := func(i int, sentence, field, value string) {
		t.Helper()
		path := "/teams/" + e.team.String() + "/assignments/" + ids[i].String() + "/edit"
		form := p.get(t, path).fields()
		form.Set(field, value)
		got := p.post(t, path, form)
		require.Equal(t, http.StatusUnprocessableEntity, got.status)
		require.Contains(t, got.text, sentence)
		if field != "version" {
			require.Equal(t, value, got.fields().Get(field))
		}
	}
	refuses(1, "Hall had the assignment “Anna” from Tue 10 Nov 2026, 08:00 to Thu 12 Nov 2026, 08:00. Enter its end or a later time.",
		"started_at", "2026-11-11T08:00")
	refuses(1, "Hall has the open assignment “Cy” since Sat 14 Nov 2026, 08:00. Enter its start or an earlier time.", "ended_at", "")
	refuses(0, "Hall had the assignment “Bea” from Thu 12 Nov 2026, 08:00 to Sat 14 Nov 2026, 08:00. Enter its start or an earlier time.",
		"ended_at", "2026-11-13T08:00")
	refuses(1, "“Bea” started on Thu 12 Nov 2026, 08:00. Enter a later time.", "ended_at", "2026-11-12T08:00")
	refuses(1, "This time is in the future.", "ended_at", "2026-11-23T08:00")
	refuses(1, "Enter when the assignment started.", "started_at", "")
	refuses(1, "The label must not be empty.", "label", "")
	refuses(1, "changed meanwhile", "version", "")
}

// TestEditAssignmentTwice checks that the second of two people who edit the same assignment sees what the first did.
func TestEditAssignmentTwice(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	device := e.addNamedDevice(t, "dev:1", "Hall", nil)
	id := e.addAssignment(t, device, "Anna", e.now.Add(-48*time.Hour))
	path := "/teams/" + e.team.String() + "/assignments/" + id.String() + "/edit"
	first, second := e.signIn(t, e.team, roomsensor.Editor), e.signIn(t, e.team, roomsensor.Editor)
	late := second.get(t, path).fields()
	form := first.get(t, path).fields()
	form.Set("label", "Anna <b>")
	form.Set("ended_at", "2026-11-22T08:00")
	seen := requirePreview(t, first.post(t, path, form))

	late.Set("external_ref", "crm-7")
	preview := requirePreview(t, second.post(t, path, late))
	require.Equal(t, http.StatusSeeOther, first.post(t, path, seen).status)
	for name, form := range map[string]url.Values{"after the preview": preview, "before it": late} {
		got := second.post(t, path, form)
		require.Equal(t, http.StatusUnprocessableEntity, got.status, name)
		require.Contains(t, got.text, first.email+" changed End from none to Sun 22 Nov 2026, 08:00, Label from “Anna” to “Anna <b>”.")
		require.Equal(t, "crm-7", got.fields().Get("external_ref"), "what was entered is still there")
		late = got.fields()
	}
	require.Nil(t, e.assignment(t, id).ExternalRef)
	late.Set("label", "Anna <b>")
	requirePreview(t, second.post(t, path, late), "Referencenonecrm-7")
}

// TestMovePerson checks the moves to a free room and to one with somebody in it.
func TestMovePerson(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	rooms := map[string]uuid.UUID{}
	for i, name := range []string{"Dorm 1", "Dorm 2", "Dorm 3", "Old dorm"} {
		rooms[name] = e.addNamedDevice(t, "dev:"+string(rune('1'+i)), name, nil)
	}
	e.exec(t, `UPDATE devices SET retired_at = now() WHERE id = $1`, rooms["Old dorm"])
	maya := athlete(rooms["Dorm 1"], "Maya", e.now.Add(-10*24*time.Hour))
	maya.ExternalRef = new("crm-7")
	id := e.start(t, maya)
	p := e.signIn(t, e.team, roomsensor.Editor)
	path := "/teams/" + e.team.String() + "/assignments/move"
	shown := p.get(t, path+"?who="+id.String())
	require.Contains(t, shown.find("#who option[selected]").Text(), "Maya, Dorm 1")
	require.Equal(t, []string{"Choose", "Dorm 1, Maya", "Dorm 2", "Dorm 3"},
		shown.find("#to option").Map(func(_ int, o *goquery.Selection) string { return strings.TrimSpace(o.Text()) }))
	move := func(who uuid.UUID, to string, more ...string) url.Values {
		form := url.Values{"who": {who.String()}, "to": {rooms[to].String()}, "if_occupied": {"swap"}}
		for i := 0; i < len(more); i += 2 {
			form.Set(more[i], more[i+1])
		}
		return form
	}
	open := func(room string) roomsensor.Assignment {
		d, err := e.store.Device(t.Context(), e.team, rooms[room])
		require.NoError(t, err)
		require.NotNil(t, d.ActiveAssignment, room)
		return e.assignment(t, d.ActiveAssignment.ID)
	}

	done := p.follow(t, p.post(t, path, move(id, "Dorm 2", "at", "2026-11-21T20:00", "old_room", "place")))
	require.Contains(t, done.text, "Moved Maya from Dorm 1 to Dorm 2 at Sat 21 Nov 2026, 20:00.")
	require.Equal(t, "crm-7", *open("Dorm 2").ExternalRef)
	require.Equal(t, roomsensor.Place, open("Dorm 1").Type)
	require.Equal(t, *e.assignment(t, id).EndedAt, open("Dorm 1").StartedAt)

	ana := e.start(t, athlete(rooms["Dorm 3"], "Ana", e.now.Add(-5*24*time.Hour)))
	swap := move(ana, "Dorm 2", "at", "2026-11-22T08:00")
	confirmed := requirePreview(t, p.post(t, path, swap), "Dorm 2 has the open assignment “Maya” since Sat 21 Nov 2026, 20:00. Maya moves to Dorm 3 at the same time.")
	require.Nil(t, e.assignment(t, ana).EndedAt)
	require.Equal(t, http.StatusSeeOther, p.post(t, path, confirmed).status)
	require.Equal(t, "Ana", open("Dorm 2").Label)
	require.Equal(t, "Maya", open("Dorm 3").Label)

	ending := move(open("Dorm 3").ID, "Dorm 2", "if_occupied", "end")
	confirmed = requirePreview(t, p.post(t, path, ending), "“Ana” since Sun 22 Nov 2026, 08:00. It ends.", "Dorm 3 then has no assignment.")
	// Another person moves in before the form is sent: it is shown again.
	_, err := e.store.ChangeAssignments(t.Context(), e.team, roomsensor.TransferAssignment(open("Dorm 2").ID,
		athlete(rooms["Dorm 2"], "Bea", e.now.Add(-time.Minute))), nil)
	require.NoError(t, err)
	confirmed = requirePreview(t, p.post(t, path, confirmed), "“Bea” since")
	require.Equal(t, http.StatusSeeOther, p.post(t, path, confirmed).status)
	require.Equal(t, "Maya", open("Dorm 2").Label)

	refuses := func(form url.Values, sentence string) {
		t.Helper()
		got := p.post(t, path, form)
		require.Equal(t, http.StatusUnprocessableEntity, got.status)
		require.Contains(t, got.text, sentence)
	}
	refuses(move(open("Dorm 2").ID, "Dorm 2"), "Maya is in this room already.")
	refuses(move(uuid.New(), "Dorm 2"), "Choose the person who moves.")
	refuses(move(open("Dorm 1").ID, "Dorm 2"), "Choose the person who moves.")
	refuses(move(open("Dorm 2").ID, "none"), "Choose the new room.")
	refuses(move(ana, "Dorm 1"), "“Ana” ended already")
	refuses(move(open("Dorm 2").ID, "Dorm 3", "at", "2999-01-01T00:00"), "This time is in the future.")
}

// TestKnownPerson checks what the forms know about a person: the name to choose, the reference, and another room.
func TestKnownPerson(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	rooms := []uuid.UUID{e.addNamedDevice(t, "dev:1", "Dorm 1", nil), e.addNamedDevice(t, "dev:2", "Dorm 2", nil)}
	maya := athlete(rooms[0], "Maya Okafor", e.now.Add(-24*time.Hour))
	maya.ExternalRef = new("crm-7")
	id := e.start(t, maya)
	p := e.signIn(t, e.team, roomsensor.Editor)
	path := "/teams/" + e.team.String() + "/assignments/start/" + rooms[1].String()
	require.Equal(t, 1, p.get(t, path).find(`datalist option[value="Maya Okafor"]`).Length())

	form := url.Values{"label": {"maya okafor"}, "type": {"athlete"}, "home_or_travel": {"home"}}
	got := p.post(t, path, form)
	confirmed := requirePreview(t, got, "Maya Okafor is open in Dorm 1 since Sat 21 Nov 2026, 14:05: end that one?")
	require.Equal(t, 2, got.find("button[name=elsewhere]").Length())
	require.Nil(t, e.assignment(t, id).EndedAt)
	confirmed.Set("elsewhere", "end")
	require.Contains(t, p.follow(t, p.post(t, path, confirmed)).text,
		"Started maya okafor on Dorm 2. The reference crm-7 of maya okafor was carried over.")
	require.Equal(t, e.now, *e.assignment(t, id).EndedAt)

	d, err := e.store.Device(t.Context(), e.team, rooms[1])
	require.NoError(t, err)
	require.Equal(t, "crm-7", *d.ActiveAssignment.ExternalRef)
	path = "/teams/" + e.team.String() + "/assignments/start/" + rooms[0].String()
	got = p.post(t, path, form)
	confirmed = requirePreview(t, got, "maya okafor is open in Dorm 2 since Sun 22 Nov 2026, 14:05, and stays open there.")
	require.Zero(t, got.find("button[name=elsewhere]").Length(), "it starts at the same time")
	e.exec(t, `UPDATE assignments SET started_at = started_at - interval '1 hour' WHERE ended_at IS NULL`)
	confirmed = requirePreview(t, p.post(t, path, confirmed), "2026, 13:05: end that one?")
	confirmed.Set("elsewhere", "keep")
	require.Equal(t, http.StatusSeeOther, p.post(t, path, confirmed).status)
	require.Nil(t, e.assignment(t, d.ActiveAssignment.ID).EndedAt)

	room := e.addNamedDevice(t, "dev:3", "Dorm 3", nil)
	path = "/teams/" + e.team.String() + "/assignments/start/" + room.String()
	old := url.Values{"label": {"Tom"}, "type": {"athlete"}, "home_or_travel": {"home"}, "at": {"2020-11-22T14:00"}}
	confirmed = requirePreview(t, p.post(t, path, old), "Tom starts on Sun 22 Nov 2020, 14:00, 2191 days ago. Check the date.")
	require.Equal(t, http.StatusSeeOther, p.post(t, path, confirmed).status)
}
