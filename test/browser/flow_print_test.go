package browser_test

import (
	"regexp"
	"testing"
	"time"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
)

// testPrint prints a night in which 12 athletes had bad air: it fits on one sheet of A4.
func (f *flow) testPrint(t *testing.T) {
	t.Helper()
	f.exec(t, `UPDATE assignments SET ended_at = now() - interval '5 days' WHERE ended_at IS NULL AND device_id = $1`, f.pool)
	for range 12 {
		device := uuid.New()
		f.exec(t, `INSERT INTO devices (id, team_id, hardware_id, display_name) VALUES ($1, $2, $3, 'Dormitory ' || left($3, 6))`,
			device, f.team, newUnit())
		f.exec(t, `INSERT INTO assignments (device_id, type, label, started_at)
			VALUES ($1, 'athlete', 'Maximiliane Oberhofer', now() - interval '9 days')`, device)
		f.exec(t, `INSERT INTO readings (device_id, bucket_at, measured_at, ingested_at, co2_ppm, temp_c, humidity_pct, lux, spl_db)
			SELECT $1, bucket, bucket + interval '1 minute', now(), 1600, 29, 75, 3, 58
			FROM generate_series(date_bin('5 minutes', now() - interval '3 days', 'epoch'), now(), '5 minutes') bucket`, device)
	}
	p := f.as(t, roomsensor.Viewer)
	ended := time.Now().In(flowZone).AddDate(0, 0, -2) // A night that is still running says so, and has one line more.
	p.open(t, f.path+"/nights?night="+ended.Format(time.DateOnly))
	require.Contains(t, p.text(t), "12 of 12")
	printed, err := chromedp.Call(p.within(t), page.PrintToPDF, page.PrintToPDFParams{PaperWidth: 8.27, PaperHeight: 11.69})
	require.NoError(t, err)
	sheets := regexp.MustCompile(`/Type\s*/Page\b`).FindAll(printed.Data, -1)
	require.Len(t, sheets, 1)
}
