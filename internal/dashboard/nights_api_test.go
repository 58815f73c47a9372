package dashboard_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/api"
	"roomsensor/internal/cursor"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store"
	"roomsensor/test/conformance"
)

// readAPI returns a function that gets a path of the API, which has the database and the time of the dashboard.
func (e *env) readAPI(t *testing.T) func(path string) []byte {
	t.Helper()
	s, err := store.Open(t.Context(), e.sql.Config().ConnString(), store.API)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	key := roomsensor.Key{TeamID: e.team, Scope: roomsensor.ScopeRead}
	var text string
	key.ID, text, key.SecretSHA256 = roomsensor.GenerateKey(roomsensor.APIKey)
	_, err = s.CreateAPIKey(t.Context(), key)
	require.NoError(t, err)
	handler, err := api.New(api.Config{
		CursorSecret: make([]byte, cursor.SecretBytes), Docs: http.NotFoundHandler(), Now: func() time.Time { return e.now },
		Log: zerolog.Nop(),
	}, s)
	require.NoError(t, err)
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return func(path string) []byte {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/v1"+path, nil)
		require.NoError(t, err)
		request.Header.Set("Authorization", "Bearer "+text)
		response, err := server.Client().Do(request)
		require.NoError(t, err)
		body, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		require.Equal(t, http.StatusOK, response.StatusCode, "%s: %s", path, body)
		return body
	}
}

// apiNight is an item of GET /nights.
type apiNight struct {
	Night    string     `json:"night"`
	Label    string     `json:"label"`
	Verdict  string     `json:"verdict"`
	From     time.Time  `json:"from"`
	To       time.Time  `json:"to"`
	DeviceID uuid.UUID  `json:"device_id"`
	CO2      nightStats `json:"co2_ppm"`
	Temp     nightStats `json:"temp_c"`
	Sound    nightStats `json:"spl_db"`
	Expected int        `json:"expected"`
	Present  int        `json:"present"`
}

type nightStats struct {
	Min         *float32 `json:"min"`
	Mean        *float32 `json:"mean"`
	Max         *float32 `json:"max"`
	MinutesWarn int      `json:"minutes_warn"`
	MinutesBad  int      `json:"minutes_bad"`
}

// nightArithmetic counts the readings of a part of a night by the default limits.
const nightArithmetic = `SELECT count(*), count(*) FILTER (WHERE warn) * 5, count(*) FILTER (WHERE bad) * 5,
		min(co2_ppm), (sum(co2_ppm::float8) / count(co2_ppm))::real, max(co2_ppm),
		count(*) FILTER (WHERE co2_ppm > 1000) * 5, count(*) FILTER (WHERE co2_ppm > 1400) * 5,
		min(temp_c), (sum(temp_c::float8) / count(temp_c))::real, max(temp_c),
		count(*) FILTER (WHERE temp_c < 16 OR temp_c > 24) * 5, count(*) FILTER (WHERE temp_c < 14 OR temp_c > 27) * 5,
		count(*) FILTER (WHERE spl_db > 45) * 5, count(*) FILTER (WHERE spl_db > 55) * 5
	FROM (SELECT *, co2_ppm > 1000 OR temp_c < 16 OR temp_c > 24 OR spl_db > 45 AS warn,
			co2_ppm > 1400 OR temp_c < 14 OR temp_c > 27 OR spl_db > 55 AS bad FROM readings) r
	WHERE device_id = $1 AND bucket_at >= $2 AND bucket_at < $3`

// requireArithmetic compares a night with the readings of its part of the night.
func (e *env) requireArithmetic(t *testing.T, got *apiNight) {
	t.Helper()
	want := apiNight{
		Night: got.Night, Label: got.Label, From: got.From, To: got.To, DeviceID: got.DeviceID, Verdict: "good",
		Expected: roomsensor.Window{From: got.From, To: got.To}.Buckets(),
	}
	want.Sound.Min, want.Sound.Mean, want.Sound.Max = got.Sound.Min, got.Sound.Mean, got.Sound.Max
	var warn, bad int // minutes in which any metric was beyond a limit
	require.NoError(t, e.sql.QueryRow(t.Context(), nightArithmetic, got.DeviceID, got.From, got.To).Scan(
		&want.Present, &warn, &bad,
		&want.CO2.Min, &want.CO2.Mean, &want.CO2.Max, &want.CO2.MinutesWarn, &want.CO2.MinutesBad,
		&want.Temp.Min, &want.Temp.Mean, &want.Temp.Max, &want.Temp.MinutesWarn, &want.Temp.MinutesBad,
		&want.Sound.MinutesWarn, &want.Sound.MinutesBad))
	switch {
	case bad >= 30:
		want.Verdict = "bad"
	case warn >= 60:
		want.Verdict = "stuffy"
	case 5*want.Present < 4*want.Expected: // Each reading has a value with a limit.
		want.Verdict = "unknown"
	}
	require.Equal(t, want, *got)
}

// TestNightsOfTheAPI compares GET /nights with arithmetic over the readings, and GET /nights.csv with the download of
// the dashboard: in usual nights and those in which the clocks change, for people who move during a night.
func TestNightsOfTheAPI(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "A17.2", "A17.3")
	e := newEnv(t)
	e.exec(t, `UPDATE teams SET time_zone = 'Europe/Berlin' WHERE id = $1`, e.team)
	nights := map[string]int{"2026-03-27": 108, "2026-03-28": 96, "2026-10-24": 120, "2026-11-21": 108}
	first := e.addRoom(t, e.team, "dev:1", "Ana", "2026-01-01Z")
	second := e.addRoom(t, e.team, "dev:2", "=Bo", "2026-10-25T04:30:00.000001Z")
	e.addRoom(t, e.team, "dev:3", "Silent", "2026-01-01Z")
	e.exec(t, `UPDATE devices SET display_name = 'Room "1", West' WHERE id = $1`, first)
	e.exec(t, `UPDATE assignments SET type = 'athlete', external_ref = 'crm-' || label, ended_at = CASE label WHEN 'Ana' THEN timestamptz '2026-10-25 04:30Z' END
		WHERE label <> 'Silent'`)
	e.exec(t, `INSERT INTO assignments (device_id, type, label, external_ref, started_at, ended_at) VALUES
		($1, 'athlete', 'Ana', 'crm-Ana', '2026-10-25 04:30Z', '2026-10-25 04:30:00.000001Z'), ($1, 'athlete', 'Ana', 'crm-Ana', '2026-03-28 23:07:33Z', '2026-10-01Z'),
		($2, 'athlete', 'Bo', 'crm-Bo', '2026-10-25 04:30Z', NULL)`, second, first)
	e.exec(t, `INSERT INTO readings (device_id, bucket_at, co2_ppm, temp_c, spl_db)
		SELECT d, t, 900 + 600 * sin(n + extract(epoch FROM t) / 7000), nullif(20 + 9 * sin(n + extract(epoch FROM t) / 9000), 20), CASE WHEN extract(minute FROM t) = 0 THEN 50 END
		FROM unnest($1::uuid[]) WITH ORDINALITY r(d, n), unnest($2::date[]) night, generate_series(night + interval '15 hours', night + interval '33 hours', '5 minutes') t
		WHERE extract(epoch FROM t)::int % 2100 <> 0`, []uuid.UUID{first, second}, []string{"2026-03-27", "2026-03-28", "2026-10-24", "2026-11-21"})
	read, p := e.readAPI(t), e.signIn(t, e.team, roomsensor.Viewer)
	for night, whole := range nights {
		var page struct {
			Data []apiNight `json:"data"`
		}
		require.NoError(t, json.Unmarshal(read("/nights?night="+night), &page))
		require.GreaterOrEqual(t, len(page.Data), 2, night)
		longest := 0
		for i := range page.Data {
			require.Equal(t, night, page.Data[i].Night)
			e.requireArithmetic(t, &page.Data[i])
			longest = max(longest, page.Data[i].Expected)
		}
		require.Equal(t, whole, longest, night)
		require.Equal(t, p.get(t, "/teams/"+e.team.String()+"/nights.csv?night="+night).body, string(read("/nights.csv?night="+night)), night)
	}
}
