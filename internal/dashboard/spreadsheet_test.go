package dashboard_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/xuri/excelize/v2"

	"roomsensor/internal/roomsensor"
)

// rowsOf returns the cells of an .xlsx file as Excel shows them.
func rowsOf(t *testing.T, file *page) [][]string {
	t.Helper()
	require.Equal(t, http.StatusOK, file.status, file.text)
	book, err := excelize.OpenReader(strings.NewReader(file.body))
	require.NoError(t, err)
	defer func() { require.NoError(t, book.Close()) }()
	rows, err := book.GetRows("Sheet1")
	require.NoError(t, err)
	kind, err := book.GetCellType("Sheet1", "A2")
	require.NoError(t, err)
	require.Contains(t, []excelize.CellType{excelize.CellTypeUnset, excelize.CellTypeNumber}, kind, "a date, not a text")
	return rows
}

// TestSpreadsheet checks what a spreadsheet has: local times as dates, rooms, the person of each row, and means.
func TestSpreadsheet(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.exec(t, `UPDATE teams SET time_zone = 'Europe/Berlin' WHERE id = $1`, e.team)
	device := e.addRoom(t, e.team, "dev:1", "=Ana", "2026-10-01Z")
	e.exec(t, `UPDATE devices SET display_name = 'Büro; Süd' WHERE id = $1`, device)
	e.exec(t, `UPDATE assignments SET ended_at = '2026-10-25T00:30:00Z' WHERE device_id = $1`, device)
	e.exec(t, `INSERT INTO assignments (device_id, type, label, started_at) VALUES ($1, 'athlete', 'Ben', '2026-10-25T00:30:00Z')`, device)
	e.addAir(t, device, "2026-10-25T00:00:00Z", "2026-10-25T02:00:00Z", 700) // The clocks are set back at 01:00Z.
	e.exec(t, `UPDATE readings SET co2_ppm = 900 WHERE bucket_at >= '2026-10-25T01:00:00Z'`)
	path := "/teams/" + e.team.String() + "/export"
	p := e.signIn(t, e.team, roomsensor.Viewer)
	// download counts an export, and downloads what the page offers.
	download := func(query, rows, language string) *page {
		counted := p.get(t, path+"?count=1&metric=co2_ppm&metric=temp_c&"+query)
		require.Contains(t, counted.text, rows+", about", query)
		link, ok := counted.find(`a[href*="/export/spreadsheet."]`).Attr("href")
		require.True(t, ok)
		return p.send(t, http.MethodGet, link, url.Values{}, map[string]string{"Accept-Language": language})
	}
	const october = "preset=calendar&month=2026-10"
	readings := rowsOf(t, download(october+"&format=xlsx", "24 rows", ""))
	require.Len(t, readings, 25)
	require.Equal(t, []string{"Time", "UTC offset", "Room", "Athlete or place", "CO₂ (ppm)", "Temperature (°C)"}, readings[0])
	require.Equal(t, []string{"2026-10-25 02:00", "+02:00", "Büro; Süd", "=Ana", "700", "20.44"}, readings[1])
	require.Equal(t, []string{"2026-10-25 02:00", "+01:00", "Büro; Süd", "Ben", "900", "20.44"}, readings[13])

	hours := rowsOf(t, download(october+"&format=xlsx&means=1h", "2 rows", ""))
	require.Equal(t, []string{"2026-10-25 02:00", "+02:00", "Büro; Süd", "=Ana / Ben", "700", "20.44"}, hours[1])
	require.Equal(t, []string{"2026-10-25 02:00", "+01:00", "Büro; Süd", "Ben", "900", "20.44"}, hours[2])
	days := rowsOf(t, download(october+"&format=xlsx&means=1d", "1 row", ""))
	require.Equal(t, []string{"2026-10-25 00:00", "+02:00", "Büro; Süd", "=Ana / Ben", "800", "20.44"}, days[1])

	german := download(october+"&format=excel&means=1d", "1 row", "de-DE,de;q=0.9").body
	require.Equal(t, "\ufeffTime;UTC offset;Room;Athlete or place;CO₂ (ppm);Temperature (°C)\r\n"+
		"2026-10-25 00:00;+02:00;\"Büro; Süd\";'=Ana / Ben;800;20,44\r\n", german)
	english := download(october+"&format=excel&means=1d", "1 row", "en-US").body
	require.Equal(t, "2026-10-25 00:00,+02:00,\"Büro; Süd\",'=Ana / Ben,800,20.44", strings.Split(english, "\r\n")[1])

	for query, element := range map[string]string{"preset=calendar&month=2026-13": "#month-error", "preset=calendar": "#month-error"} {
		refused := p.get(t, path+"?count=1&"+query)
		require.Equal(t, http.StatusUnprocessableEntity, refused.status)
		require.Contains(t, refused.find(element).Text(), "Choose a month")
	}
	require.Contains(t, p.get(t, path+"?count=1&preset=this-month").text, "Sun 1 Nov, 00:00 to Tue 1 Dec, 00:00")
	require.Contains(t, p.get(t, path+"?count=1&preset=last-month").text, "Thu 1 Oct, 00:00 to Sun 1 Nov, 00:00")
}
