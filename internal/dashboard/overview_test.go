package dashboard_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
	"roomsensor/test/proctest"
)

// overviewPath is the path of the overview of a team.
func overviewPath(team uuid.UUID) string { return "/teams/" + team.String() }

// addDevice creates a device that sent an upload before now, unless before is negative, and returns its id.
func (e *env) addDevice(t testing.TB, team uuid.UUID, hardwareID, name string, before time.Duration) (id uuid.UUID) {
	t.Helper()
	var seen *time.Time
	if before >= 0 {
		seen = new(e.now.Add(-before))
	}
	require.NoError(t, e.sql.QueryRow(t.Context(),
		`INSERT INTO devices (team_id, hardware_id, display_name) VALUES ($1, $2, nullif($3, '')) RETURNING id`,
		team, hardwareID, name).Scan(&id))
	e.exec(t, `UPDATE device_state SET last_seen_at = $2 WHERE device_id = $1`, id, seen)
	return id
}

// addReading stores a reading of a time before now, with CO2 and temperature; nil is null.
func (e *env) addReading(t testing.TB, device uuid.UUID, before time.Duration, co2, temp any) {
	t.Helper()
	e.exec(t, `INSERT INTO readings (device_id, bucket_at, co2_ppm, temp_c) VALUES ($1, $2, $3, $4)`,
		device, e.now.Add(-before), co2, temp)
}

// tileText returns the text of the tile of a device, with single spaces.
func (p *page) tileText(id uuid.UUID) string {
	return strings.Join(strings.Fields(p.find("#d"+id.String()).Text()), " ")
}

// names returns the names of the tiles in order.
func (p *page) names() (names []string) {
	for _, n := range p.find(".tile h2").EachIter() {
		names = append(names, n.Text())
	}
	return names
}

func TestOverview(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	ten := e.addDevice(t, e.team, "dev:10", "Room 10", 2*time.Minute)
	nine := e.addDevice(t, e.team, "dev:9", "room 9", 2*time.Hour)
	offline := e.addDevice(t, e.team, "dev:7", "", 25*time.Hour)
	silent := e.addDevice(t, e.team, "dev:8", "Spare", -1)
	e.exec(t, `UPDATE devices SET metadata = '{"site":"a=b"}' WHERE id = $1`, nine)
	e.exec(t, `INSERT INTO assignments (device_id, type, label, home_or_travel, started_at)
		VALUES ($1, 'athlete', 'Zoë <b>', 'home', now())`, ten)
	e.addReading(t, ten, 5*time.Minute, 1500, nil)
	e.addReading(t, ten, 2*time.Hour, 600, 21.25)
	e.addReading(t, nine, 3*time.Hour, 700, 20)
	e.addDevice(t, e.addTeam(t, "Other"), "dev:11", "Foreign", 0)
	p := e.signIn(t, e.team, roomsensor.Viewer)
	get := func(query string) *page {
		answer := p.get(t, overviewPath(e.team)+query)
		require.Equal(t, http.StatusOK, answer.status, answer.text)
		return answer
	}
	all := get("")

	t.Run("tiles", func(t *testing.T) {
		require.Equal(t, []string{"Room 10", "dev:7", "room 9", "Spare"}, all.names(), "what needs attention first, then in the order that people expect")
		text := all.tileText(ten)
		require.Contains(t, text, "Room 10Bad Zoë <b> 5 min ago CO₂1500 ppm high", "beyond the limit, in words")
		require.Contains(t, text, "Temperature21.2 °C 2 h ago", "older than the newest reading")
		require.NotContains(t, text, "Humidity")
		require.Contains(t, text, "5 min ago")
		label, _ := all.find("#d" + ten.String() + " svg").Attr("aria-label")
		require.Equal(t, "CO₂ of the last 24 hours: hourly means from 600 to 1500 ppm", label)
		require.Contains(t, all.tileText(nine), "room 9Unknown")
		require.Contains(t, all.tileText(nine), "3 h ago")
		require.True(t, all.find("#d"+nine.String()).HasClass("old"))
		require.False(t, all.find("#d"+ten.String()).HasClass("old"))
		require.Contains(t, all.tileText(offline), "dev:7Unknown Not assigned")
		require.Contains(t, all.tileText(silent), "SpareUnknown Not assigned")
	})
	t.Run("time without JavaScript", func(t *testing.T) {
		require.Contains(t, all.text, "This page shows the data of Sun 22 Nov, 14:05:00. Reload it for newer data.")
	})
	t.Run("summary and counts", func(t *testing.T) {
		require.Equal(t, "1 room needs attention", all.find("h1").Text())
		require.Equal(t, "Air in 4 rooms: 1 bad, 3 unknown", all.find("#summary").Text())
		found := get("?show=silent&q=room")
		require.Equal(t, "1 of 4 rooms", found.find("#summary").Text())
		require.Equal(t, "1 room needs attention", found.find("h1").Text(), "among those that the search finds")
		groups := get("?group=site")
		require.Equal(t, "Needs attentiona=bWithout site", groups.find(".group > h2").Text())
	})
	t.Run("filters", func(t *testing.T) {
		for query, want := range map[string][]string{
			"?q=ROOM":           {"Room 10", "room 9"},
			"?q=dev:8":          {"Spare"},
			"?q=zo%C3%AB":       {"Room 10"},
			"?tag=site%3Da%3Db": {"room 9"},
			"?tag=site%3Da":     nil,
			"?show=silent":      {"dev:7", "room 9", "Spare"},
			"?show=bad":         {"Room 10"},
			"?show=attention":   {"Room 10"},
			"?show=good":        nil,
			"?q=%25":            nil,
		} {
			require.Equal(t, want, get(query).names(), query)
		}
		require.Contains(t, get("?q=x").text, "No device matches. Show all devices")
		require.Contains(t, get("?q=77").text, "An admin of your team can find out why unit dev:77 is missing")
		link, _ := e.signIn(t, e.team, roomsensor.Admin).get(t, overviewPath(e.team)+"?q=dev:77").find(".empty a").Last().Attr("href")
		require.Equal(t, overviewPath(e.team)+"/rejects?unit=dev%3a77", link)
		require.Equal(t, "site: a=b", get("?tag=site%3Da%3Db").find("#tag [selected]").Text())
	})
	t.Run("values that are not valid", func(t *testing.T) {
		for query, want := range map[string]string{
			"?show=fine":                     "There is no such choice.",
			"?page=0":                        "There is no such page.",
			"?page=x":                        "There is no such page.",
			"?q=" + strings.Repeat("x", 201): "The search has more than 200 characters.",
		} {
			answer := get(query)
			require.Contains(t, answer.find(".notice.error").Text(), want)
			require.Len(t, answer.names(), 4, query)
		}
	})
	t.Run("another team", func(t *testing.T) {
		other := e.signIn(t, e.addTeam(t, "Third"), roomsensor.Admin)
		for _, path := range []string{overviewPath(e.team), overviewPath(e.team) + "/tiles"} {
			require.Equal(t, http.StatusNotFound, other.get(t, path).status)
		}
	})
}

func TestOverviewWithoutData(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	p := e.signIn(t, e.team, roomsensor.Viewer)
	empty := p.get(t, overviewPath(e.team))
	require.Contains(t, empty.text, "No devices")
	require.Contains(t, empty.text, "An admin of your team adds them on this page.")
	admin := e.signIn(t, e.team, roomsensor.Admin).get(t, overviewPath(e.team))
	require.Equal(t, overviewPath(e.team)+"/devices/new", admin.find("#overview .button").AttrOr("href", ""))
	require.Zero(t, empty.find("form[role=search]").Length())

	e.addDevice(t, e.team, "dev:1", "", -1)
	require.Eventually(t, func() bool { // A page may be a second old.
		return strings.Contains(p.get(t, overviewPath(e.team)).text, "No device has sent an upload yet.")
	}, proctest.Patience, 100*time.Millisecond)
}

// TestOverviewOfManyDevices checks the size of a page of 1,000 devices, and what a team with more of them sees.
func TestOverviewOfManyDevices(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.exec(t, `INSERT INTO devices (team_id, hardware_id, display_name, metadata)
		SELECT $1, 'dev:' || i, 'Room ' || i, '{"site":"north"}' FROM generate_series(1, 1000) i`, e.team)
	e.exec(t, `UPDATE device_state SET last_seen_at = $1::timestamptz - substr(hardware_id, 5)::integer * interval '1 second'
		FROM devices WHERE id = device_id`, e.now)
	e.exec(t, `INSERT INTO assignments (device_id, type, label, home_or_travel, started_at)
		SELECT id, 'athlete', 'Athlete of ' || display_name, 'home', now() FROM devices`)
	e.exec(t, `INSERT INTO readings (device_id, bucket_at, co2_ppm, temp_c, humidity_pct, lux, spl_db)
		SELECT id, date_bin('5 minutes', $1::timestamptz - h * interval '1 hour', '2000-01-01'),
			400 + 1000 * random(), 21, 40, 100, 35 FROM devices, generate_series(0, 23) h`, e.now)
	p := e.signIn(t, e.team, roomsensor.Viewer)
	// The page does not wait for so many curves. They follow without any other change.
	answer := p.get(t, overviewPath(e.team))
	require.Len(t, answer.names(), 1000)
	require.Contains(t, answer.text, "Reload it for newer data and the curves of CO₂.")
	require.Zero(t, answer.find("svg.sparkline").Length())
	require.Eventually(t, func() bool {
		answer = p.get(t, overviewPath(e.team))
		return answer.find("svg.sparkline").Length() == 1000
	}, time.Minute, 100*time.Millisecond)
	require.NotContains(t, answer.text, "the curves of CO₂")
	answer = p.send(t, http.MethodGet, overviewPath(e.team), url.Values{}, map[string]string{"Accept-Encoding": "gzip"})
	require.Equal(t, "gzip", answer.header.Get("Content-Encoding"))
	require.Less(t, len(answer.body), 400_000)

	e.exec(t, `INSERT INTO devices (team_id, hardware_id, display_name)
		SELECT $1, 'dev:' || i, 'Room ' || i FROM generate_series(1001, 5001) i`, e.team)
	var whole *page
	require.Eventually(t, func() bool {
		whole = p.get(t, overviewPath(e.team))
		return strings.Contains(whole.text, "This team has more devices than the overview shows.")
	}, time.Minute, 100*time.Millisecond)
	require.Len(t, whole.names(), 1000)
	require.Contains(t, whole.text, "Page 1 of 5")
	next, _ := whole.find("[rel=next]").Attr("href")
	require.Equal(t, overviewPath(e.team)+"?page=2", next)
	require.Contains(t, p.get(t, next).text, fmt.Sprintf("Page %d of 5", 2))
}
