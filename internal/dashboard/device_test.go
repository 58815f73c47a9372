package dashboard_test

import (
	"fmt"
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

// installDevice creates a device with a unit that has been installed for a month.
func (e *env) installDevice(t testing.TB, team uuid.UUID, hardwareID string) uuid.UUID {
	t.Helper()
	d, err := e.operator(t).CreateDevice(t.Context(), roomsensor.NewDevice{
		TeamID: team, HardwareID: hardwareID, InstalledAt: new(e.now.AddDate(0, -1, 0)),
	}, e.now)
	require.NoError(t, err)
	return d.ID
}

// addReadings inserts a reading every 5 minutes of a window that ends now, which arrived on time.
func (e *env) addReadings(t testing.TB, device uuid.UUID, length time.Duration) {
	t.Helper()
	e.exec(t, `INSERT INTO readings (device_id, bucket_at, measured_at, ingested_at, co2_ppm, temp_c)
		SELECT $1, b, b AS measured_at, b + interval '1 minute', 600 + extract(epoch FROM b)::bigint % 3600 / 36, 21.5
		FROM generate_series($2::timestamptz, $3::timestamptz - interval '1 second', interval '5 minutes') b`,
		device, e.now.Add(-length), e.now)
}

func devicePath(e *env, device uuid.UUID, rest string) string {
	return "/teams/" + e.team.String() + "/devices/" + device.String() + rest
}

// texts returns the text of each element, with single spaces.
func texts(s *goquery.Selection) []string {
	return s.Map(func(_ int, s *goquery.Selection) string { return strings.Join(strings.Fields(s.Text()), " ") })
}

// rows returns the texts of the cells of each row, joined.
func rows(s *goquery.Selection) []string {
	return s.Map(func(_ int, s *goquery.Selection) string {
		return strings.TrimSpace(strings.Join(texts(s.Children()), " "))
	})
}

func TestDevicePage(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	device := e.installDevice(t, e.team, "dev:1")
	viewer := e.signIn(t, e.team, roomsensor.Viewer)

	t.Run("a device that never sent an upload", func(t *testing.T) {
		p := viewer.get(t, devicePath(e, device, ""))
		require.Equal(t, http.StatusOK, p.status, p.text)
		require.Equal(t, "dev:1", p.find("h1").Text())
		require.Contains(t, p.text, "This device never sent an upload. Check that unit dev:1 is switched on")
		require.Zero(t, p.find("svg").Length())
	})

	e.addReadings(t, device, 100*24*time.Hour)
	e.exec(t, `UPDATE device_state SET last_seen_at = $2, rssi_dbm = -71, signal_bars = 4, firmware_version = '1.2 <b>'
		WHERE device_id = $1`, device, e.now.Add(-2*time.Hour))
	e.exec(t, `UPDATE devices SET display_name = 'Bedroom <i>', metadata = '{"floor": "2 <u>"}' WHERE id = $1`, device)

	t.Run("status, signal, firmware and tags in words", func(t *testing.T) {
		p := viewer.get(t, devicePath(e, device, ""))
		require.Equal(t, "Bedroom <i>", p.find("h1").Text())
		require.Equal(t, []string{"Stale last upload 2 h ago"}, texts(p.find(".state")))
		require.Equal(t, []string{"Hardware unit dev:1", "Assignment not assigned", "Signal -71 dBm, 4 of 5 bars", "Firmware 1.2 <b>", "Tags floor=2 <u>"},
			rows(p.find(".facts > div")))
		require.Equal(t, []string{"dev:1 Thu 22 Oct, 14:05 still installed"}, rows(p.find("section.card tbody tr")))
		require.Zero(t, p.find("form[method=post]").Length()-p.find("header form").Length(), "a viewer changes nothing")
	})
	t.Run("single readings up to 7 days, hours beyond", func(t *testing.T) {
		for query, want := range map[string]struct {
			rows, first string
			step        string
		}{
			"":           {"288 readings", "Sun 22 Nov, 14:00 600 21.5 no data no data no data", "300000"},
			"?range=7d":  {"2016 readings", "Sun 22 Nov, 14:00 600 21.5 no data no data no data", "900000"},
			"?range=90d": {"2161 hours", "Sun 22 Nov, 14:00 600 21.5 no data no data no data", "10800000"},
			"?from=2026-11-20T10:00&to=2026-11-20T11:00": {"12 readings", "Fri 20 Nov, 10:55 691 21.5 no data no data no data", "300000"},
			"?from=2026-11-01T10:15&to=2026-11-20T11:30": {"458 hours", "Fri 20 Nov, 11:00 620 600 to 641 21.5 no data no data no data", "3600000"},
		} {
			p := viewer.get(t, devicePath(e, device, query))
			require.Equal(t, http.StatusOK, p.status, p.text)
			require.Contains(t, p.find("#numbers summary").Text(), want.rows, query)
			require.Equal(t, 5, p.find("svg.chart").Length())
			step, _ := p.find("svg.chart").First().Attr("data-step")
			require.Equal(t, want.step, step, query)
			require.Equal(t, want.first, rows(p.find("#numbers tbody tr").First())[0], query)
		}
	})
	t.Run("pages of the table", func(t *testing.T) {
		p := viewer.get(t, devicePath(e, device, "?page=3"))
		require.Equal(t, 88, p.find("#numbers tbody tr").Length())
		require.Contains(t, texts(p.find("#numbers nav"))[0], "Newer Page 3 of 3")
		p = viewer.get(t, devicePath(e, device, "?page=99999999999999999999"))
		require.Equal(t, http.StatusOK, p.status)
	})
	t.Run("a window that is not valid", func(t *testing.T) {
		for query, want := range map[string]string{
			"?from=x&to=2026-11-20T11:00":                "Enter a date and a time",
			"?from=2026-11-20T11:00":                     "Enter a date and a time",
			"?from=2026-11-20T11:00&to=2026-11-20T11:00": "The end must be later than the beginning",
			"?from=2024-11-20T11:00&to=2026-11-20T11:00": "The window has more than 400 days",
		} {
			p := viewer.get(t, devicePath(e, device, "?"+strings.TrimPrefix(query, "?")))
			require.Equal(t, http.StatusUnprocessableEntity, p.status, query)
			require.Contains(t, p.find(".error").Text(), want, query)
		}
	})
	t.Run("another team's device does not exist", func(t *testing.T) {
		other := e.installDevice(t, e.addTeam(t, "Other"), "dev:99")
		for _, id := range []string{other.String(), uuid.NewString(), "x"} {
			require.Equal(t, http.StatusNotFound, viewer.get(t, "/teams/"+e.team.String()+"/devices/"+id).status)
		}
	})
}

func TestDevicePageGapsLateBands(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	device := e.installDevice(t, e.team, "dev:1")
	viewer := e.signIn(t, e.team, roomsensor.Viewer)
	e.addReadings(t, device, 30*24*time.Hour)
	ago := func(d time.Duration) time.Time { return e.now.Add(-d) }
	e.exec(t, `DELETE FROM readings WHERE bucket_at >= $1 AND bucket_at < $2`, ago(5*time.Hour), ago(3*time.Hour))
	// Exactly one hour is not late.
	e.exec(t, `UPDATE readings SET ingested_at = measured_at + interval '1 hour' WHERE bucket_at >= $1`, ago(time.Hour))
	e.exec(t, `UPDATE readings SET ingested_at = measured_at + interval '3 hours' WHERE bucket_at >= $1 AND bucket_at < $2`, ago(9*time.Hour), ago(8*time.Hour))
	e.start(t, roomsensor.Assignment{
		DeviceID: device, Type: roomsensor.Athlete, Label: "Anna <b>", HomeOrTravel: roomsensor.Home, StartedAt: ago(48 * time.Hour),
	})
	e.exec(t, `INSERT INTO assignments (device_id, type, label, started_at, ended_at) VALUES
		($1, 'place', 'Before', $2, $3)`, device, ago(72*time.Hour), ago(48*time.Hour))

	for query, want := range map[string]struct{ late, gap string }{
		"":          {"Arrived late: 12 of 264 points.", "One gap of 2 h 0 min."},
		"?range=7d": {"Arrived late: 12 of 1992 points.", "One gap of 2 h 0 min."},
	} {
		p := viewer.get(t, devicePath(e, device, query))
		summary := p.find(".co2_ppm .chart-summary").Text()
		require.Contains(t, summary, want.late)
		require.Contains(t, summary, want.gap)
		require.Equal(t, 2, p.find(".co2_ppm .chart-late path, .co2_ppm .chart-line").Length())
		require.Equal(t, 1, strings.Count(p.find(".co2_ppm .chart-late path").AttrOr("d", ""), "M"))
		require.Equal(t, 2, strings.Count(p.find(".co2_ppm .chart-line").AttrOr("d", ""), "M"), "the gap is a gap")
	}
	require.Equal(t, []string{"Anna <b>"}, texts(viewer.get(t, devicePath(e, device, "")).find(".co2_ppm .chart-band-label")))
	p := viewer.get(t, devicePath(e, device, "?from=2026-11-01T00:00&to=2026-11-22T14:05&page=1"))
	require.Equal(t, []string{"Before", "Anna <b>"}, texts(p.find(".co2_ppm .chart-band-label")))
	require.Contains(t, p.find(".co2_ppm .chart-summary").Text(), "Arrived late: 2 of 518 points.", "hours with late readings")
	require.Contains(t, rows(p.find("#numbers tbody tr"))[7], "3 h")
}

func TestDeviceForms(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	device := e.installDevice(t, e.team, "dev:1")
	e.installDevice(t, e.team, "dev:2")
	e.installDevice(t, e.addTeam(t, "Other"), "dev:99")
	e.installDevice(t, e.addTeam(t, "Fifth"), "dev:98")
	e.exec(t, `UPDATE device_hardware SET removed_at = '2026-11-21T00:00:00Z' WHERE hardware_id = 'dev:98'`)
	editor := e.signIn(t, e.team, roomsensor.Editor)
	read := func() roomsensor.Device {
		d, err := e.store.Device(t.Context(), e.team, device)
		require.NoError(t, err)
		return d
	}
	accept := func(form string, fields url.Values, message string) {
		t.Helper()
		p := editor.follow(t, editor.post(t, devicePath(e, device, form), fields))
		require.Equal(t, http.StatusOK, p.status)
		require.Equal(t, message, p.find(".notice").Text())
	}
	refuse := func(form string, fields url.Values, message string) {
		t.Helper()
		before := read()
		p := editor.post(t, devicePath(e, device, form), fields)
		require.Equal(t, http.StatusUnprocessableEntity, p.status, p.text)
		require.Contains(t, p.find(".error").Text(), message)
		require.Equal(t, before, read())
	}
	t.Run("name", func(t *testing.T) {
		accept("/name", url.Values{"name": {" Room <1> "}}, "The name was changed.")
		require.Equal(t, "Room <1>", *read().DisplayName)
		refuse("/name", url.Values{"name": {strings.Repeat("é", 201)}}, "The name has 201 characters; at most 200 are allowed.")
		refuse("/name", url.Values{"name": {"a\u0085b"}}, "control characters")
		accept("/name", url.Values{"name": {""}}, "The name was changed.")
		require.Nil(t, read().DisplayName)
	})
	t.Run("tags", func(t *testing.T) {
		accept("/tags", url.Values{"key": {"floor"}, "value": {"2"}}, "The tag floor was saved.")
		accept("/tags", url.Values{"key": {"wing"}, "value": {"<b>"}}, "The tag wing was saved.")
		require.Equal(t, map[string]string{"floor": "2", "wing": "<b>"}, read().Metadata)
		accept("/tags", url.Values{"key": {"floor"}, "value": {"2"}, "remove": {"1"}}, "The tag floor was removed.")
		require.Equal(t, map[string]string{"wing": "<b>"}, read().Metadata)
		refuse("/tags", url.Values{"key": {"a b"}, "value": {"2"}}, "A tag must have a key of 1 to 64 of the characters")
		refuse("/tags", url.Values{"key": {"a"}, "value": {strings.Repeat("é", 501)}}, "The value has 501 characters")
		for i := range roomsensor.MaxMetadataKeys - 1 {
			e.exec(t, `UPDATE devices SET metadata = metadata || jsonb_build_object($2::text, 'x') WHERE id = $1`, device, fmt.Sprint("k", i))
		}
		refuse("/tags", url.Values{"key": {"more"}, "value": {"2"}}, "The device has 50 tags, which is the most. Remove one first.")
	})
	t.Run("hardware", func(t *testing.T) {
		accept("/hardware", url.Values{"hardware_id": {"dev:3"}, "at": {"2026-11-20T10:00"}}, "Unit dev:3 was installed.")
		p := editor.get(t, devicePath(e, device, ""))
		require.Equal(t, []string{"dev:3 Fri 20 Nov, 10:00 still installed", "dev:1 Thu 22 Oct, 14:05 Fri 20 Nov, 10:00"}, rows(p.find("section.card tbody tr")))
		for message, fields := range map[string]url.Values{
			"A unit is dev: and 1 to 20 digits":                                  {"hardware_id": {"dev:x"}},
			"This time is in the future":                                         {"hardware_id": {"dev:4"}, "at": {"2026-11-22T14:06"}},
			"Enter a date and a time":                                            {"hardware_id": {"dev:4"}, "at": {"yesterday"}},
			"Unit dev:3 is already installed in this device":                     {"hardware_id": {"dev:3"}},
			"Unit dev:2 is installed in the device dev:2. Remove it there first": {"hardware_id": {"dev:2"}},
			"Unit dev:99 cannot be installed here. Check the hardware id":        {"hardware_id": {"dev:99"}},
			"Unit dev:98 cannot be installed here. Check the hardware id":        {"hardware_id": {"dev:98"}, "at": {"2026-11-20T12:00"}},
			"Unit dev:3 was installed at Fri 20 Nov 2026, 10:00:00.":             {"hardware_id": {"dev:4"}, "at": {"2026-11-20T10:00"}},
		} {
			refuse("/hardware", fields, message)
		}
		accept("/hardware", url.Values{"remove": {"1"}, "hardware_id": {""}, "at": {""}}, "The unit was removed.")
		refuse("/hardware", url.Values{"remove": {"1"}}, "No unit is installed in this device.")
		require.Contains(t, editor.get(t, devicePath(e, device, "")).text, "dev:3 (removed)")
		refuse("/hardware", url.Values{"hardware_id": {"dev:5"}, "at": {"2026-11-20T09:00"}}, "This device had another unit at that time or later.")
		accept("/hardware", url.Values{"hardware_id": {"dev:5"}}, "Unit dev:5 was installed.")
	})
	t.Run("another team's device does not exist", func(t *testing.T) {
		other := e.installDevice(t, e.addTeam(t, "Fourth"), "dev:77")
		for form, fields := range map[string]url.Values{
			"/name": {"name": {"x"}}, "/tags": {"key": {"x"}}, "/hardware": {"hardware_id": {"dev:78"}},
		} {
			require.Equal(t, http.StatusNotFound, editor.post(t, devicePath(e, other, form), fields).status)
		}
		require.Equal(t, http.StatusNotFound, editor.post(t, devicePath(e, other, "/hardware"), url.Values{"remove": {"1"}}).status)
	})
	t.Run("a viewer", func(t *testing.T) {
		viewer := e.signIn(t, e.team, roomsensor.Viewer)
		for _, form := range []string{"/name", "/tags", "/hardware"} {
			require.Equal(t, http.StatusForbidden, viewer.post(t, devicePath(e, device, form), url.Values{"name": {"x"}}).status)
		}
	})
}
