package feed_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
)

// BenchmarkFeedCatchUp reads the feed of 100 devices that is 30 days behind, 864,000 readings, in pages of 1000.
func BenchmarkFeedCatchUp(b *testing.B) {
	f := setup(b)
	f.Exec(b, `INSERT INTO devices (team_id, hardware_id) SELECT $1, 'dev:' || i FROM generate_series(2, 100) i`, f.TeamID)
	f.Exec(b, `WITH s AS (SELECT set_config('roomsensor.worker', 'on', false))
		INSERT INTO readings (device_id, bucket_at, co2_ppm, temp_c, humidity_pct, lux, spl_db, ingested_at)
		SELECT d.id, t, 1, 2, 3, 4, 5, t + interval '7 seconds'
		FROM s, generate_series(date_bin('5 minutes', now() - interval '30 days', '2000-01-01'), now() - interval '1 minute',
			'5 minutes') t, devices d`)
	f.Exec(b, `INSERT INTO feed_days SELECT DISTINCT $1::uuid, date_trunc('hour', t, 'UTC'), (t AT TIME ZONE 'UTC')::date
		FROM generate_series(now() - interval '31 days', now(), '5 minutes') t`, f.TeamID)
	f.Exec(b, `UPDATE feed_state SET days_since = now() - interval '60 days'`)
	f.Exec(b, `ANALYZE readings`)
	watermark := f.watermark(b)
	for b.Loop() {
		read, pages, began := 0, 0, time.Now()
		q := roomsensor.FeedQuery{Round: roomsensor.FeedRound{From: watermark.AddDate(0, 0, -30), To: watermark}, Most: 1001}
		for done := false; !done; pages++ {
			taken := 0
			progress, err := f.EachChange(b.Context(), f.TeamID, q, func(*roomsensor.Change) bool {
				taken++
				return taken <= 1000
			})
			require.NoError(b, err)
			read += min(taken, 1000)
			done, q.After = progress.Done, progress.After
		}
		b.ReportMetric(float64(read)/time.Since(began).Seconds(), "readings/s")
		b.ReportMetric(float64(pages), "pages")
		require.Greater(b, read, 850_000)
	}
}
