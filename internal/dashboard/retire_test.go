package dashboard_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
	"roomsensor/test/proctest"
)

// TestRetireDevice retires a device and brings it back.
func TestRetireDevice(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	device := e.installDevice(t, e.team, "dev:7")
	e.addNamedDevice(t, "dev:8", "Hall", nil)
	e.addReadings(t, device, time.Hour)
	e.addAssignment(t, device, "Anna", e.now.Add(-48*time.Hour))
	editor := e.signIn(t, e.team, roomsensor.Editor)
	names := func() []string { return editor.get(t, e.path("")).names() }
	require.Len(t, names(), 2)
	page := editor.get(t, devicePath(e, device, ""))
	require.Contains(t, page.text, "The assignment “Anna” ends now. Unit dev:7 is removed")

	for range 2 { // The second one is the same form, sent again.
		saved := editor.post(t, devicePath(e, device, "/retire"), nil)
		require.Equal(t, "The device is retired.", editor.follow(t, saved).find(".notice.ok").Text())
		e.now = e.now.Add(time.Minute)
	}
	require.Eventually(t, func() bool { return len(names()) == 1 }, proctest.Patience, 100*time.Millisecond) // It is read once a second.
	page = editor.get(t, devicePath(e, device, ""))
	require.Contains(t, page.text, "This device is retired since Sun 22 Nov, 14:05.")
	require.Contains(t, page.text, "not assigned")
	require.Contains(t, page.text, "dev:7 (removed)")
	require.NotZero(t, page.find(".chart-card path").Length(), "its readings stay")
	require.Zero(t, page.find("form[action$=retire]").Length())
	require.Equal(t, 1, editor.get(t, e.path("/devices/retired")).find("tbody tr").Length())
	require.Equal(t, 2, editor.get(t, e.path("/assignments")).find(".lane").Length(), "its assignment is in the window")
	require.Equal(t, 1, editor.get(t, e.path("/assignments?last=2026-01-31")).find(".lane").Length())

	require.Equal(t, http.StatusSeeOther, editor.post(t, devicePath(e, device, "/hardware"), map[string][]string{"hardware_id": {"dev:9"}}).status)
	require.Eventually(t, func() bool { return len(names()) == 2 }, proctest.Patience, 100*time.Millisecond)
	require.Contains(t, editor.get(t, e.path("/devices/retired")).text, "No device is retired.")
	e.addAssignment(t, device, "Bea", e.now)
	e.now = e.now.Add(-time.Minute) // Another process has a clock that is ahead.
	refused := editor.post(t, devicePath(e, device, "/retire"), nil)
	require.Equal(t, http.StatusUnprocessableEntity, refused.status)
	require.Contains(t, refused.text, "The unit or the assignment of this device began just now.")
}
