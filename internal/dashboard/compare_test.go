package dashboard_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
)

// TestComparison checks that a line has the readings of a room, or those of the rooms that a person had.
func TestComparison(t *testing.T) {
	t.Parallel()
	e, dorm12, dorm14 := movesEnv(t)
	viewer := e.signIn(t, e.team, roomsensor.Viewer)
	var maya, place string
	require.NoError(t, e.sql.QueryRow(t.Context(),
		"SELECT id FROM assignments WHERE device_id = $1 AND label = 'Maya Okafor'", dorm12).Scan(&maya))
	room12, room14, person := "&with=room-"+dorm12.String(), "&with=room-"+dorm14.String(), "&with=person-"+maya
	compare := func(query string) *page { return viewer.get(t, e.path("/compare?"+query)) }
	table := func(p *page) []string { return rows(p.find("tbody tr")) }

	p := compare("")
	require.Equal(t, "Compare rooms and people", p.find("h1").Text())
	require.Equal(t, []string{"Nothing", "Dorm 12", "Dorm 14", "Dorm 16", "maya okafor", "Ana Ruiz", "Zoë Lang"},
		texts(p.find("#with-1 option")))

	// Of 1,549 readings of each line, 36, 18 and 54 have 1600 ppm, and the others 600.
	for _, window := range []string{"range=7d", "range=30d"} {
		p = compare(window + room12 + room14 + person + room12)
		require.Equal(t, "CO₂ was highest: Maya Okafor, 635 ppm on average", strings.ReplaceAll(p.find("h1").Text(), "\u00a0", " "))
		require.Equal(t, []string{
			"Dorm 12 623 ppm 600 ppm 1600 ppm", "Dorm 14 612 ppm 600 ppm 1600 ppm", "Maya Okafor 635 ppm 600 ppm 1600 ppm",
		}, table(p), window)
		require.Equal(t, 3, p.find("svg.chart .chart-line").Length())
		require.Equal(t, dorm14.String(), strings.TrimPrefix(p.find("#with-2 option[selected]").AttrOr("value", ""), "room-"))
	}

	p = compare("range=24h&before=1" + room14)
	require.Equal(t, []string{"Dorm 14 600 ppm 600 ppm 600 ppm", "Dorm 14, the day before 662 ppm 600 ppm 1600 ppm"}, table(p))
	values := strings.Split(p.find(".line-2").AttrOr("data-values", ""), ",")
	peak := 12*8 - 1 // From 14:05 to 22:00, which is when the peak of the day before began.
	require.Equal(t, []string{"600", "1600"}, values[peak-1:peak+1])

	p = compare("range=7d&metric=lux" + room12)
	require.Equal(t, []string{"Dorm 12 no data in this window"}, table(p))

	p = compare("before=1" + room12 + room14 + person)
	require.Equal(t, http.StatusUnprocessableEntity, p.status)
	require.Contains(t, p.text, "Choose at most two rooms or people to compare them with the time before.")

	other := e.addTeam(t, "Other")
	e.exec(t, "INSERT INTO assignments (device_id, type, label, started_at) VALUES ($1, 'place', 'x', '2026-10-01Z')",
		e.installDevice(t, e.team, "dev:98"))
	require.NoError(t, e.sql.QueryRow(t.Context(), "SELECT id FROM assignments WHERE label = 'x'").Scan(&place))
	for _, with := range []string{
		"room-" + e.installDevice(t, other, "dev:99").String(), "person-" + place, "person-" + dorm12.String(), "room-x", "x",
	} {
		require.Equal(t, http.StatusNotFound, compare("with="+with).status, with)
	}
}
