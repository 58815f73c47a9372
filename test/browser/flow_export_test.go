package browser_test

import (
	"archive/zip"
	"encoding/csv"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
)

// testExport counts the rows of an export and downloads it as CSV and as Parquet.
func (f *flow) testExport(t *testing.T) {
	t.Helper()
	p := f.as(t, roomsensor.Viewer)
	p.enter(t, "Export")
	p.tabTo(t, "By name")
	p.press(t, kb.Home)
	require.Equal(t, "Pool", evaluate[string](t, p, `document.activeElement.selectedOptions[0].text`))
	p.enter(t, "Last 7 days")
	rows := p.countedRows(t)
	var stored int
	f.scan(t, []any{&stored}, `SELECT count(*) FROM readings WHERE device_id = $1`, f.pool)
	require.Equal(t, stored, rows)

	records, err := csv.NewReader(strings.NewReader(string(p.download(t, "Download CSV")))).ReadAll()
	require.NoError(t, err)
	require.Len(t, records, rows+1, "and the header")
	require.Equal(t, "local_time", records[0][1])
	require.Equal(t, "Pool", records[1][3])
	p.copyText(t, "Copy")

	// For a spreadsheet whose language has decimal commas, in another time zone, with the person of each reading.
	p.fill(t, "Local time in CSV and Parquet", "new york")
	p.choose(t, "Numbers in CSV", "For a spreadsheet, such as 21,4")
	p.tabTo(t, "In the long shape, the athlete or place (assignment)")
	p.press(t, " ")
	p.enter(t, "Count rows")
	require.Equal(t, rows, p.countedRows(t))
	sheet := string(p.download(t, "Download CSV"))
	header, _, _ := strings.Cut(sheet, "\n")
	require.Equal(t, "\ufeffbucket_at;local_time;device_id;display_name;co2_ppm;temp_c;humidity_pct;lux;spl_db;valid_mask;"+
		"assignment_id;label;external_ref", header)
	require.Equal(t, rows+1, strings.Count(sheet, "\n"))
	p.keep(t, "export-columns")

	p.tabTo(t, "CSV")
	p.press(t, kb.ArrowRight)
	p.enter(t, "Count rows")
	require.Equal(t, rows, p.countedRows(t))
	content := string(p.download(t, "Download Parquet"))
	file, err := parquet.OpenFile(strings.NewReader(content), int64(len(content)))
	require.NoError(t, err)
	require.EqualValues(t, rows, file.NumRows())
	p.requireQuiet(t)
}

// testSpreadsheet downloads a day per row for Excel.
func (f *flow) testSpreadsheet(t *testing.T) {
	t.Helper()
	p := f.as(t, roomsensor.Viewer)
	p.enter(t, "Export")
	p.tabTo(t, "By name")
	p.press(t, kb.Home)
	p.tabTo(t, "CSV")
	p.press(t, kb.ArrowLeft+kb.ArrowLeft)
	p.choose(t, "Rows for Excel", "Daily means")
	p.enter(t, "Last 7 days")
	content := string(p.download(t, "Download for Excel"))
	archive, err := zip.NewReader(strings.NewReader(content), int64(len(content)))
	require.NoError(t, err)
	sheet, err := fs.ReadFile(archive, "xl/worksheets/sheet1.xml")
	require.NoError(t, err)
	var days int
	f.scan(t, []any{&days}, `SELECT count(DISTINCT (bucket_at AT TIME ZONE $2)::date) FROM readings WHERE device_id = $1`,
		f.pool, flowZone.String())
	require.Equal(t, days+1, strings.Count(string(sheet), "<row "), "and the header")
	p.requireQuiet(t)
}

// countedRows returns the number of rows that the page shows before the download.
func (p *tab) countedRows(t *testing.T) int {
	t.Helper()
	found := regexp.MustCompile(`(\d+) rows, about \d+\x{a0}kB`).FindStringSubmatch(p.text(t))
	require.NotNil(t, found, p.text(t))
	rows, err := strconv.Atoi(found[1])
	require.NoError(t, err)
	return rows
}

// download presses Enter on the next link with a name, and returns the file to which it leads.
func (p *tab) download(t *testing.T, name string) []byte {
	t.Helper()
	dir, ctx := t.TempDir(), p.within(t)
	_, err := chromedp.CallBrowser(ctx, browser.SetDownloadBehavior, browser.SetDownloadBehaviorParams{
		Behavior: browser.SetDownloadBehaviorBehaviorAllowAndName, DownloadPath: dir, EventsEnabled: new(true),
		BrowserContextID: chromedp.FromContext(ctx).BrowserContextID,
	})
	require.NoError(t, err)
	p.tabTo(t, name)
	began, progress := chromedp.BrowserEvents(ctx, browser.DownloadWillBegin), chromedp.BrowserEvents(ctx, browser.DownloadProgress)
	p.press(t, kb.Enter)
	// Other tabs download, too.
	address := evaluate[string](t, p, `document.activeElement.href`)
	id := ""
	for e, err := range began {
		require.NoError(t, err)
		if e.URL == address {
			id = e.GUID
			break
		}
	}
	for e, err := range progress {
		require.NoError(t, err)
		if e.GUID == id && e.State != browser.DownloadProgressStateInProgress {
			require.Equal(t, browser.DownloadProgressStateCompleted, e.State)
			break
		}
	}
	content, err := os.ReadFile(filepath.Join(dir, id))
	require.NoError(t, err)
	return content
}
