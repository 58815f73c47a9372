package dashboard_test

import (
	"encoding/csv"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/PuerkitoBio/goquery"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
)

// addRoom creates a device with an open assignment since a time, and returns the id of the device.
func (e *env) addRoom(t testing.TB, team uuid.UUID, hardware, label, since string) (device uuid.UUID) {
	t.Helper()
	require.NoError(t, e.sql.QueryRow(t.Context(), `INSERT INTO devices (team_id, hardware_id) VALUES ($1, $2) RETURNING id`,
		team, hardware).Scan(&device))
	e.exec(t, `INSERT INTO assignments (device_id, type, label, home_or_travel, started_at) VALUES ($1, 'place', $2, 'home', $3)`,
		device, label, since)
	return device
}

// addAir stores readings every 5 minutes in a window, with one value of CO₂.
func (e *env) addAir(t testing.TB, device uuid.UUID, from, to string, co2 float32) {
	t.Helper()
	e.exec(t, `INSERT INTO readings (device_id, bucket_at, co2_ppm, temp_c)
		SELECT $1, t, $4, 20.44 FROM generate_series($2::timestamptz, $3::timestamptz - interval '1 second', '5 minutes') t`,
		device, from, to, co2)
}

// nightEnv has a team in Berlin with four rooms, of which the night of 21 November was different.
func nightEnv(t *testing.T) *env {
	t.Helper()
	e := newEnv(t)
	e.exec(t, `UPDATE teams SET time_zone = 'Europe/Berlin' WHERE id = $1`, e.team)
	e.addAir(t, e.addRoom(t, e.team, "dev:1", "Fine", "2026-01-01Z"), "2026-11-14T00:00:00Z", "2026-11-22T14:00:00Z", 800)
	bad := e.addRoom(t, e.team, "dev:2", "=Bad", "2026-01-01Z")
	e.addAir(t, bad, "2026-11-21T21:00:00Z", "2026-11-21T23:35:00Z", 1432.5)
	e.addAir(t, bad, "2026-11-21T23:35:00Z", "2026-11-22T06:00:00Z", 600)
	e.addRoom(t, e.team, "dev:3", "Silent", "2026-01-01Z")
	e.addAir(t, e.addRoom(t, e.team, "dev:4", "Began", "2026-11-22T05:00:00Z"), "2026-11-21T21:00:00Z", "2026-11-22T05:30:00Z", 1250)
	return e
}

// roomsOf returns the rooms of a page in its order: those in full, then those with good air.
func roomsOf(p *page) (labels []string) {
	p.find("main li a").Each(func(_ int, link *goquery.Selection) { labels = append(labels, link.Text()) })
	return labels
}

// row returns the text of a room.
func row(p *page, label string) string {
	return strings.Join(strings.Fields(p.find("main li").FilterFunction(func(_ int, room *goquery.Selection) bool {
		return room.Find("a").Text() == label
	}).Text()), " ")
}

// TestNights checks the page of a night: the answer, its rooms, the worst first, with advice, and that an assignment which
// began during the night counts from its start.
func TestNights(t *testing.T) {
	t.Parallel()
	e := nightEnv(t)
	nights := "/teams/" + e.team.String() + "/nights"
	p := e.signIn(t, e.team, roomsensor.Viewer)
	got := p.get(t, nights)
	require.Equal(t, http.StatusOK, got.status)
	require.Contains(t, got.text, "Last night: Sat 21 Nov, 22:00 to Sun 22 Nov, 07:00 (Europe/Berlin)")
	require.NotContains(t, got.text, "still running")
	require.Equal(t, "1 of 4 rooms had bad air, and nothing is known of 2 last night", got.find("h1").Text())
	require.Equal(t, []string{"=Bad", "Began", "Silent", "Fine"}, roomsOf(got))
	require.Contains(t, row(got, "=Bad"), "Bad CO₂ was above 1400 ppm for 2 h 35 min: open the window or the door before sleeping.")
	require.Contains(t, row(got, "=Bad"), "600 to 1432 ppm2 h 35 min above 1400 ppm")
	require.Contains(t, row(got, "Began"), "Unknown since Sun 22 Nov, 06:00 6 of 12 readings Only 6 of 12 readings arrived")
	require.Contains(t, row(got, "Silent"), "No readings arrived: check that the device has power and a connection.")
	require.Contains(t, row(got, "Fine"), "CO₂ 800 ppm")
	require.Contains(t, row(got, "Fine"), "20.4 °C")
	require.Contains(t, got.find(".good-rooms summary").Text(), "1 room with good air")
	strip, _ := got.find(".good-rooms .strip").Attr("aria-label")
	require.Equal(t, "14 nights before: 7 good, 7 unknown", strip)
	require.Equal(t, []string{"=Bad", "Began", "Silent", "Fine"}, roomsOf(p.get(t, nights+"?sort=name")))
	link, _ := got.find("main li a").First().Attr("href")
	require.Contains(t, link, "?from=2026-11-21T22:00&to=2026-11-22T07:00", "the page of the device shows the night")

	before := p.get(t, nights+"?night=2026-11-20")
	require.Contains(t, before.find("h1").Text(), "in the night of Fri 20 Nov 2026")
	require.Equal(t, []string{"=Bad", "Silent", "Fine"}, roomsOf(before), "Began did not exist")
	require.Contains(t, p.get(t, nights+"?night=2026-10-24").text, "this night has 10 h")
	for query, want := range map[string]string{
		"?night=2026-11-22": "This night has not begun yet", "?night=yesterday": "Enter the night as the date", "?night=2026-02-30": "Enter the night as the date",
	} {
		refused := p.get(t, nights+query)
		require.Equal(t, http.StatusUnprocessableEntity, refused.status)
		require.Contains(t, refused.text, want)
	}
	require.Contains(t, p.get(t, nights+"?night=2025-01-01").text, "No device was assigned")
	require.Equal(t, http.StatusOK, p.get(t, nights+"?night=0001-01-01&page=-1").status)

	e.now = e.now.Add(-12 * 60 * 60 * 1e9) // 03:05 in Berlin.
	running := p.get(t, nights)
	require.Contains(t, running.text, "This night is still running. The numbers count until Sun 22 Nov, 03:05.")
	require.NotContains(t, row(running, "Fine"), "readings", "all of the 61 that are expected are there")

	e.now = e.now.Add(-36 * time.Minute) // 02:29 in Berlin: less than half of the night is over.
	last := p.get(t, nights)
	require.Contains(t, last.text, "Last night: Fri 20 Nov, 22:00 to Sat 21 Nov, 07:00")
	require.Contains(t, last.text, "Another night has begun. Show tonight so far")
	require.Contains(t, p.get(t, nights+"?night=2026-11-21").text, "Tonight: Sat 21 Nov, 22:00 to Sun 22 Nov, 07:00")
}

// TestNightsCSV checks that the CSV has the numbers of the page, and that a spreadsheet does not run a label.
func TestNightsCSV(t *testing.T) {
	t.Parallel()
	e := nightEnv(t)
	path := "/teams/" + e.team.String() + "/nights.csv"
	p := e.signIn(t, e.team, roomsensor.Viewer)
	got := p.get(t, path)
	require.Equal(t, "text/csv; charset=utf-8", got.header.Get("Content-Type"))
	require.Equal(t, `attachment; filename="night_2026-11-21.csv"`, got.header.Get("Content-Disposition"))
	records, err := csv.NewReader(strings.NewReader(got.body)).ReadAll()
	require.NoError(t, err)
	require.Len(t, records, 5)
	column := map[string]int{}
	for i, name := range records[0] {
		column[name] = i
	}
	for label, want := range map[string]map[string]string{
		"'=Bad":  {"night": "2026-11-21", "from": "2026-11-21T21:00:00Z", "to": "2026-11-22T06:00:00Z", "coverage": "1", "co2_ppm_max": "1432.5", "verdict": "bad", "co2_ppm_minutes_bad": "155", "co2_ppm_minutes_warn": "155"},
		"Began":  {"from": "2026-11-22T05:00:00Z", "expected": "12", "present": "6", "coverage": "0.5", "temp_c_mean": "20.44"},
		"Silent": {"present": "0", "co2_ppm_min": "", "co2_ppm_mean": "", "co2_ppm_max": "", "spl_db_minutes_warn": "0", "verdict": "unknown"},
	} {
		found := false
		for _, record := range records[1:] {
			if record[column["label"]] == label {
				found = true
				for name, text := range want {
					require.Equal(t, text, record[column[name]], "%s %s", label, name)
				}
			}
		}
		require.True(t, found, label)
	}
	require.Equal(t, http.StatusBadRequest, p.get(t, path+"?night=x").status)
}
