package dashboard_test

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
)

// TestExport checks that the rows that the page counts are those of the file, that the size is about right, and that the
// programs ask the API for the same.
func TestExport(t *testing.T) {
	t.Parallel()
	e := nightEnv(t)
	e.exec(t, `UPDATE devices SET display_name = 'Room ' || hardware_id, metadata = '{"floor": "2"}' WHERE hardware_id <> 'dev:2'`)
	e.exec(t, `UPDATE readings SET humidity_pct = 45.5, lux = 100, spl_db = 38.25`)
	page := "/teams/" + e.team.String() + "/export"
	p := e.signIn(t, e.team, roomsensor.Viewer)
	empty := p.get(t, page)
	require.Equal(t, http.StatusOK, empty.status)
	require.NotContains(t, empty.text, "Ready to download")
	require.Equal(t, 4, empty.find("#device option").Length())

	for query, rows := range map[string]string{
		"preset=night":                                         "318 rows",
		"preset=week":                                          "2225 rows",
		"preset=week&from=2026-01-01T00:00&to=":                "2225 rows",
		"preset=night&shape=wide":                              "108 rows with 318 readings",
		"preset=week&shape=wide&columns=id":                    "2015 rows with 2225 readings",
		"preset=week&include=ingested_at":                      "2225 rows",
		"preset=week&time_zone=":                               "2225 rows",
		"preset=week&include=assignment&include=ingested_at":   "2225 rows",
		"preset=week&excel=comma&include=assignment":           "2225 rows",
		"preset=night&shape=wide&excel=true&time_zone=tokyo":   "108 rows with 318 readings",
		"preset=month&metric=co2_ppm&tags=floor=2,":            "2574 rows",
		"preset=week&format=parquet":                           "2225 rows",
		"from=2026-11-21T22:00&to=2026-11-21T23:00&format=csv": "36 rows",
	} {
		counted := p.get(t, page+"?count=1&"+query)
		require.Equal(t, http.StatusOK, counted.status, query)
		require.Contains(t, counted.text, rows+", about", query)
		link, ok := counted.find(`a[href*="/export/readings."]`).Attr("href")
		require.True(t, ok)
		file := p.get(t, link)
		require.Equal(t, http.StatusOK, file.status)
		require.Equal(t, strings.Fields(rows)[0], file.header.Get("X-Row-Count"), query)
		require.Contains(t, file.header.Get("Content-Disposition"), "attachment; filename=\"readings_2026")
		requireEstimate(t, counted, len(file.body), query)
		if !strings.Contains(query, "parquet") {
			require.Equal(t, strings.Fields(rows)[0], strconv.Itoa(strings.Count(file.body, "\n")-1), query)
		}
		_, parameters, _ := strings.Cut(link, "?")
		for _, program := range []string{"curl", "python", "r"} {
			text := counted.find("#sample-" + program).Text()
			require.Contains(t, text, "http://127.0.0.1:8080/v1/readings.", program)
			require.Contains(t, text, "?"+parameters+`"`, program)
			require.Contains(t, text, "YOUR_API_KEY")
		}
	}
	require.Contains(t, p.get(t, page+"?count=1&from=2025-01-01T00:00&to=2025-01-02T00:00").text, "No readings")
}

// TestExportColumns checks that the page offers local times, assignments and the form for spreadsheets as the API has
// them (A18.3, A19), and that the programs read them.
func TestExportColumns(t *testing.T) {
	t.Parallel()
	e := nightEnv(t)
	e.exec(t, `UPDATE assignments SET label = 'Ana; Ruiz', external_ref = 'crm-7'`)
	page := "/teams/" + e.team.String() + "/export"
	p := e.signIn(t, e.team, roomsensor.Viewer)
	zone, _ := p.get(t, page).find("#time_zone").Attr("value")
	require.Equal(t, "Europe/Berlin", zone, "that of the team")

	const window = "?count=1&from=2026-11-21T22:00&to=2026-11-21T22:05&metric=temp_c&"
	for query, want := range map[string]struct{ header, cells, python, r string }{
		"": {
			"bucket_at,local_time,device_id,display_name,temp_c,valid_mask\n", ",2026-11-21T22:00:00+01:00,",
			`parse_dates=["bucket_at"])`, "read.csv(text = resp",
		},
		"time_zone=": {"bucket_at,device_id,display_name,temp_c,valid_mask\n", ",20.44,", `parse_dates=["bucket_at"])`, "read.csv(text = resp"},
		"time_zone=new+york&include=assignment&include=ingested_at&excel=true": {
			"\ufeffbucket_at,local_time,device_id,display_name,temp_c,valid_mask,ingested_at,assignment_id,label,external_ref\n",
			",2026-11-21 16:00:00,", `parse_dates=["bucket_at"])`, `read.csv(text = sub("^\ufeff"`,
		},
		"excel=comma&include=assignment": {
			"\ufeffbucket_at;local_time;device_id;display_name;temp_c;valid_mask;assignment_id;label;external_ref\n",
			";\"Ana; Ruiz\";crm-7", `parse_dates=["bucket_at"], sep=";", decimal=",")`, "read.csv2(",
		},
	} {
		counted := p.get(t, page+window+query)
		link, ok := counted.find(`a[href*="/export/readings.csv"]`).Attr("href")
		require.True(t, ok, query)
		file := p.get(t, link).body
		require.True(t, strings.HasPrefix(file, want.header), "%s: %s", query, file)
		require.Contains(t, file, want.cells, query)
		require.Contains(t, counted.find("#sample-python").Text(), want.python, query)
		require.Contains(t, counted.find("#sample-r").Text(), want.r, query)
	}
}

// requireEstimate checks that the size on a page is that of the file, but for a third or for what every file has.
func requireEstimate(t *testing.T, counted *page, size int, query string) {
	t.Helper()
	words := strings.Fields(strings.ReplaceAll(counted.find("strong").Text(), "\u00a0", " "))
	estimate, err := strconv.ParseFloat(words[len(words)-2], 64)
	require.NoError(t, err)
	if words[len(words)-1] == "MB" {
		estimate *= 1000
	}
	if strings.Contains(query, "parquet") {
		return // The footer is most of a small file.
	}
	require.InEpsilon(t, float64(size)/1000, estimate, 0.34, query)
}

// TestExportInvalid checks the sentences about fields that are not valid, and that ids of other teams do not exist.
func TestExportInvalid(t *testing.T) {
	t.Parallel()
	e := nightEnv(t)
	other := e.addTeam(t, "Other")
	foreign := e.addRoom(t, other, "dev:99", "Foreign", "2026-01-01Z")
	e.addAir(t, foreign, "2026-11-21T21:00:00Z", "2026-11-22T06:00:00Z", 999)
	page := "/teams/" + e.team.String() + "/export"
	p := e.signIn(t, e.team, roomsensor.Viewer)
	for query, want := range map[string]struct{ element, text string }{
		"from=2026-03-29T02:30&to=2026-03-30T00:00": {"#from-error", "does not exist in Europe/Berlin"},
		"from=2026-03-29T00:00&to=":                 {"#to-error", "Enter a date and a time"},
		"from=2026-03-29T00:00&to=2026-03-28T00:00": {"#to-error", "must be later than from"},
		"from=2026-01-01T00:00&to=2026-06-28T00:00": {"#from-error", "wider than 90 days"},
		"preset=night&tags=floor":                   {"#tags-error", "Enter tags as key=value"},
		"preset=night&time_zone=Atlantis":           {"#time_zone-error", "Choose a time zone from the list"},
		"preset=night&tags=a=1,a=2":                 {"#tags-error", "each key once"},
		"preset=night&device=" + foreign.String():   {"#device-error", "is not a device of your team"},
		"preset=night&device=" + uuid.NewString():   {"#device-error", "is not a device of your team"},
		"preset=night&device=%3Cb%3E":               {"#device-error", "must be a list of device_ids"},
		"preset=night&metric=oxygen":                {"fieldset .error", "must be a list of metrics"},
	} {
		got := p.get(t, page+"?count=1&"+query)
		require.Equal(t, http.StatusUnprocessableEntity, got.status, query)
		require.Contains(t, got.find(want.element).Text(), want.text, query)
	}
	window := "?from=2026-11-21T21:00:00Z&to=2026-11-22T06:00:00Z"
	refused := p.get(t, page+"/readings.csv"+window+"&devices="+foreign.String())
	require.Equal(t, http.StatusNotFound, refused.status)
	require.NotContains(t, p.get(t, page+"/readings.csv"+window).body, foreign.String())
}

// TestExportTooLarge checks what the page offers for more than 250,000 rows before the download: a window that fits, and
// the command line.
func TestExportTooLarge(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.exec(t, `INSERT INTO devices (team_id, hardware_id, metadata) SELECT $1, 'dev:' || i, '{"a": "it''s"}' FROM generate_series(1, 31) i`, e.team)
	e.exec(t, `INSERT INTO readings (device_id, bucket_at, co2_ppm) SELECT d.id, t, 500
		FROM devices d, generate_series('2026-10-23Z', '2026-11-22T14:00:00Z'::timestamptz, '5 minutes') t`)
	page := "/teams/" + e.team.String() + "/export"
	p := e.signIn(t, e.team, roomsensor.Viewer)
	got := p.get(t, page+"?count=1&preset=month&"+url.Values{"tags": {"a=it's"}}.Encode())
	require.Equal(t, http.StatusOK, got.status)
	require.Contains(t, got.text, "Too many rows for one file")
	require.Regexp(t, "The export would have 26[0-9]{4} rows. A file has at most 250,000.", got.text)
	require.Zero(t, got.find(`a[href*="/export/readings."]`).Length())
	require.Contains(t, got.text, `roomsensor export --roomsensor-url http://127.0.0.1:8080 --from 2026-10-23T14:05:00Z --to 2026-11-22T14:05:00Z --metadata 'a=it'\''s' --time-zone UTC -o readings.csv`)
	for query, flags := range map[string]string{
		"format=xlsx":    "--include assignment --time-zone UTC --excel true -o readings.csv",
		"format=parquet": "--time-zone UTC -o readings.parquet",
		"shape=wide&columns=id&time_zone=berlin&excel=comma": "--shape wide --columns id --time-zone Europe/Berlin --excel comma -o readings.csv",
	} {
		require.Contains(t, p.get(t, page+"?count=1&preset=month&"+query).text, flags, query)
	}
	fits, ok := got.find("#content li a").First().Attr("href")
	require.True(t, ok)
	again := p.get(t, fits)
	require.Contains(t, again.text, "Ready to download")
	require.Regexp(t, "(249[0-9]{3}|250000) rows, about", again.text)
}
