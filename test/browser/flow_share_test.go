package browser_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
)

// testShare shares a night, the nights of a person and a room with somebody who has no account, and ends a link.
func (f *flow) testShare(t *testing.T) {
	t.Helper()
	editor, guest := f.as(t, roomsensor.Editor), newTab(t, f.view)
	var problems []string
	share := func(kind, what, shows string) (link string) {
		editor.enter(t, "Make link")
		editor.requireText(t, "Everybody who has this link sees "+what)
		link = evaluate[string](t, editor, `document.getElementById('link').textContent`)
		require.EqualValues(t, http.StatusOK, guest.open(t, link).Status)
		require.Contains(t, guest.text(t), shows)
		if f.view == desktop {
			problems = append(problems, guest.problems(t, "shared-"+kind, views)...)
		}
		return link
	}
	editor.enter(t, "Last night")
	editor.enter(t, "Share this night")
	share("night", "the night of ", "last night")
	editor.enter(t, "People")
	editor.enter(t, "Ana Ruiz")
	editor.enter(t, "Share these nights")
	share("person", "the newest nights of Ana Ruiz", "Ana Ruiz had bad air in")
	editor.enter(t, "Share rooms for a screen on a wall")
	editor.tabTo(t, "Pool")
	editor.press(t, " ")
	wall := share("wall", "rooms as they are now", "Pool")
	require.NotContains(t, guest.text(t), "Sauna")
	if f.view.scripts {
		editor.copyText(t, "Copy link")
	}
	require.Equal(t, 3, strings.Count(editor.text(t), "Revoke"))
	editor.enter(t, "Revoke")
	editor.requireText(t, "The link is revoked.")
	require.EqualValues(t, http.StatusNotFound, guest.open(t, wall).Status)
	require.Contains(t, guest.text(t), "This link does not work any more")
	require.Empty(t, problems, strings.Join(problems, "\n"))
	editor.requireQuiet(t)
}

// testNotes writes down what happened in a room, which its chart and the night show.
func (f *flow) testNotes(t *testing.T) {
	t.Helper()
	p := f.as(t, roomsensor.Editor)
	p.enter(t, "Pool")
	p.expand(t, "Add a note")
	p.fill(t, "Note", "Window repaired")
	p.enter(t, "Add note")
	p.requireText(t, "The note is saved.")
	require.Equal(t, "1 Window repaired", evaluate[string](t, p, `document.querySelector('.chart-mark-label').textContent`))
	var problems []string
	if f.view == desktop {
		problems = p.problems(t, "notes", views)
	}
	p.expand(t, evaluate[string](t, p, `document.querySelector('#notes li summary').textContent`))
	p.enter(t, "Delete this note")
	p.requireText(t, "The note is deleted.")
	require.Equal(t, 0, evaluate[int](t, p, `document.querySelectorAll('.chart-mark').length`))
	require.Empty(t, problems, strings.Join(problems, "\n"))
	p.requireQuiet(t)
}
