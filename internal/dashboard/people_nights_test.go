package dashboard_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/PuerkitoBio/goquery"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
)

// movesEnv has a team in which Maya moved from Dorm 12 to Dorm 14 on 20 November, where Ana had slept before, and in
// which Zoe has a reference, by which she is known in spite of another spelling.
func movesEnv(t *testing.T) (e *env, dorm12, dorm14 uuid.UUID) {
	t.Helper()
	e = newEnv(t)
	dorm12 = e.addDevice(t, e.team, "dev:12", "Dorm 12", 0)
	dorm14 = e.addDevice(t, e.team, "dev:14", "Dorm 14", 0)
	dorm16 := e.addDevice(t, e.team, "dev:16", "Dorm 16", 0)
	for _, a := range []struct {
		device                uuid.UUID
		label, ref, from, end string
	}{
		{dorm12, "Maya Okafor", "", "2026-11-01Z", "2026-11-20T12:00:00Z"},
		{dorm14, " maya okafor", "", "2026-11-20T12:00:00Z", ""},
		{dorm14, "Ana Ruiz", "", "2026-11-01Z", "2026-11-20T12:00:00Z"},
		{dorm12, "Ana Ruiz", "", "2026-11-20T12:00:00Z", ""},
		{dorm16, "Zoe", "a-7", "2026-11-01Z", "2026-11-20T23:00:00Z"},
		{dorm16, "Zoë Lang", "a-7", "2026-11-20T23:00:00Z", ""},
	} {
		e.exec(t, `INSERT INTO assignments (device_id, type, label, external_ref, started_at, ended_at)
			VALUES ($1, 'athlete', $2, nullif($3, ''), $4, nullif($5, '')::timestamptz)`, a.device, a.label, a.ref, a.from, a.end)
	}
	for device, nights := range map[uuid.UUID][]string{dorm12: {"2026-11-18", "2026-11-19"}, dorm14: {"2026-11-20"}} {
		for _, night := range nights {
			e.addAir(t, device, night+"T22:00:00Z", night+"T23:30:00Z", 1600)
		}
	}
	for _, device := range []uuid.UUID{dorm12, dorm14, dorm16} {
		e.exec(t, `INSERT INTO readings (device_id, bucket_at, co2_ppm)
			SELECT $1, t, 600 FROM generate_series('2026-11-16T22:00:00Z', '2026-11-22T07:00:00Z'::timestamptz, '5 minutes') t
			ON CONFLICT DO NOTHING`, device)
	}
	return e, dorm12, dorm14
}

// cells returns the cells of a person on the page of all people, the newest first.
func cells(p *page, person string) (texts []string) {
	row := p.find("tbody tr").FilterFunction(func(_ int, row *goquery.Selection) bool {
		return strings.TrimSpace(row.Find("th").Text()) == person
	})
	row.Find("td").Each(func(_ int, cell *goquery.Selection) { texts = append(texts, strings.TrimSpace(cell.Text())) })
	return texts
}

// TestPeople checks that the nights of a person follow the person from room to room.
func TestPeople(t *testing.T) {
	t.Parallel()
	e, dorm12, dorm14 := movesEnv(t)
	p := e.signIn(t, e.team, roomsensor.Viewer)
	all := p.get(t, e.path("/people"))
	require.Equal(t, "maya okafor had bad air in 3 of the last 7 nights", strings.TrimSpace(all.find("h1").Text()))
	const bad = "Bad 1\u00a0h\u00a030\u00a0min"
	require.Equal(t, []string{"Good", bad, bad, bad, "Good", "Good", "Unknown"}, cells(all, "maya okafor")[:7])
	require.Equal(t, []string{"Good", "Good", "Good", "Good", "Good", "Good", "Unknown"}, cells(all, "Ana Ruiz")[:7])
	require.Equal(t, "Good", cells(all, "Zoë Lang")[1], "one person with two labels")
	require.Len(t, cells(all, "Ana Ruiz"), 14)
	link := func(n int) string {
		return all.find("tbody tr").First().Find("td a").Eq(n).AttrOr("href", "")
	}
	require.Contains(t, link(1), "/devices/"+dorm14.String()+"?from=2026-11-20T22:00&to=2026-11-21T07:00&night=2026-11-20&person=")
	require.Contains(t, link(2), "/devices/"+dorm12.String())

	device := p.get(t, link(2))
	require.Equal(t, "Dorm 12, Maya Okafor", device.find("h1").Text(), "the person of that night, not of today")
	require.Contains(t, device.text, "← Night of Thu 19 Nov 2026")
	require.Contains(t, device.find("nav[aria-label=Back]").Text(), "Nights of this person")
	back := device.find("nav[aria-label=Back] a").Last().AttrOr("href", "")
	require.Contains(t, p.get(t, back).find("h1").Text(), "in the night of Thu 19 Nov 2026")
	malformed := p.get(t, e.path("/devices/"+dorm12.String()+"?night=x&person=y"))
	require.Equal(t, http.StatusOK, malformed.status)
	require.Zero(t, malformed.find("nav[aria-label=Back]").Length())

	person := p.get(t, all.find("tbody th a").First().AttrOr("href", ""))
	require.Contains(t, person.find("h1").Text(), "maya okafor had bad air in 3 of 30 nights")
	require.Contains(t, person.text, "CO₂ was above 1400 ppm for 1 h 30 min: open the window or the door before sleeping.")
	require.Equal(t, 2, person.find("section li").Length(), "two rooms")
	file := p.get(t, person.find("section li a").Last().AttrOr("href", ""))
	require.Contains(t, file.text, "Ready to download", "an export of the readings of a stay")
	require.Contains(t, p.get(t, person.find("a:contains('Earlier')").AttrOr("href", "")).text, "Later nights")

	csv := p.get(t, e.path("/people.csv"))
	require.Contains(t, csv.body, "Zoë Lang,a-7,good,good")
	require.Contains(t, csv.body, "maya okafor,,good,bad,bad,bad,good")

	night := p.get(t, e.path("/nights?night=2026-11-21"))
	strip := night.find("li:contains('okafor') .strip").AttrOr("aria-label", "")
	require.Equal(t, "14 nights before: 3 bad, 2 good, 9 unknown", strip, "in both rooms, and never not assigned")

	otherTeam := e.addTeam(t, "Other")
	other := e.signIn(t, otherTeam, roomsensor.Admin)
	id := strings.TrimPrefix(all.find("tbody th a").First().AttrOr("href", ""), e.path("/people/"))
	foreign := "/teams/" + otherTeam.String() + "/people/" + id
	require.Equal(t, http.StatusNotFound, other.get(t, foreign).status)
	require.Equal(t, http.StatusNotFound, p.get(t, e.path("/people/"+uuid.NewString())).status)
	require.Contains(t, other.get(t, "/teams/"+otherTeam.String()+"/people").text, "No athlete had a room")
}
