package dashboard_test

import (
	"io"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
)

// BenchmarkDevicePage measures the page of a device with 90 days of readings, among 50 devices.
func BenchmarkDevicePage(b *testing.B) {
	e := newEnv(b)
	device := e.installDevice(b, e.team, "dev:1")
	e.exec(b, `INSERT INTO devices (team_id, hardware_id) SELECT $1, 'dev:' || n FROM generate_series(2, 50) n`, e.team)
	e.exec(b, `INSERT INTO readings (device_id, bucket_at, measured_at, ingested_at, co2_ppm, temp_c, humidity_pct, lux, spl_db)
		SELECT d.id, b, b AS measured_at, b + interval '1 minute', 500 + random() * 900, 18 + random() * 6, 35 + random() * 20, random() * 300, 25 + random() * 30
		FROM generate_series($1::timestamptz, $2::timestamptz - interval '1 second', interval '5 minutes') b
		CROSS JOIN (SELECT id FROM devices ORDER BY random()) d`, e.now.AddDate(0, 0, -90), e.now)
	e.exec(b, `ANALYZE`)
	viewer := e.signIn(b, e.team, roomsensor.Viewer)
	for _, length := range []string{"24h", "7d", "90d"} {
		b.Run(length, func(b *testing.B) {
			size := 0
			for b.Loop() {
				p := viewer.get(b, devicePath(e, device, "?range="+length))
				require.Equal(b, http.StatusOK, p.status)
				size = len(p.body)
			}
			b.ReportMetric(float64(size), "bytes")
		})
	}
}

// BenchmarkOverview measures the overview of 1,000 devices with readings of 24 hours, from the request to its last byte,
// with gzip: the first time, when nothing of the team is in memory, and then again. It reports the median of teams.
func BenchmarkOverview(b *testing.B) {
	const teams = 5
	e := newEnv(b)
	viewers := map[uuid.UUID]*person{}
	for range teams {
		team := e.addTeam(b, uuid.NewString())
		viewers[team] = e.signIn(b, team, roomsensor.Viewer)
		e.exec(b, `INSERT INTO devices (team_id, hardware_id, display_name, metadata)
			SELECT $1, $2 || ':' || n, 'Room ' || n, '{"site":"north"}' FROM generate_series(1, 1000) n`, team, team.String())
	}
	e.exec(b, `UPDATE device_state SET last_seen_at = $1`, e.now)
	e.exec(b, `INSERT INTO readings (device_id, bucket_at, measured_at, co2_ppm, temp_c, humidity_pct, lux, spl_db)
		SELECT d.id, b, b AS measured_at, 500 + random() * 900, 18 + random() * 6, 35 + random() * 20, random() * 300, 25 + random() * 30
		FROM generate_series($1::timestamptz, $2::timestamptz - interval '1 second', interval '5 minutes') b
		CROSS JOIN (SELECT id FROM devices ORDER BY random()) d`, e.now.AddDate(0, 0, -1), e.now)
	e.exec(b, `ANALYZE`)
	for _, name := range []string{"cold", "warm"} {
		b.Run(name, func(b *testing.B) {
			var took []time.Duration
			for range b.N {
				took = took[:0]
				for team, viewer := range viewers {
					began := time.Now()
					request, err := http.NewRequestWithContext(b.Context(), http.MethodGet, viewer.url+overviewPath(team), nil)
					require.NoError(b, err)
					answer, err := viewer.client.Do(request) // Parsing the page would take as long as the page.
					require.NoError(b, err)
					size, err := io.Copy(io.Discard, answer.Body)
					require.NoError(b, err)
					took = append(took, time.Since(began))
					require.NoError(b, answer.Body.Close())
					require.Greater(b, size, int64(500_000))
					require.Eventually(b, func() bool { // The curves of one team must not slow down the page of the next.
						return viewer.get(b, overviewPath(team)).find("svg.sparkline").Length() == 1000
					}, time.Minute, 100*time.Millisecond)
				}
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[teams/2].Microseconds())/1000, "ms/page")
		})
	}
}
