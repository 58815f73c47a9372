package service_test

import (
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/admin"
	"roomsensor/internal/config"
	"roomsensor/internal/roomsensor"
	"roomsensor/schema"
	"roomsensor/test/conformance"
	"roomsensor/test/dbtest"
)

// TestAPIStandby checks that an API process reads from a standby, that each response has what was stored before its
// request, and that the loss of the standby fails no request.
func TestAPIStandby(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 43 a")
	primary := dbtest.NewPrimary(t)
	standby := primary.NewStandby()
	standby.Set("recovery_min_apply_delay = '50ms'")
	e := &testEnv{t: t, database: primary.URL}
	o, err := admin.Open(t.Context(), config.Database{DatabaseURL: config.Secret(e.database)})
	require.NoError(t, err)
	defer o.Close()
	team, err := o.CreateTeam(t.Context(), "Team")
	require.NoError(t, err)
	e.team = uuid.MustParse(team.ID)
	device, err := o.CreateDevice(t.Context(), roomsensor.NewDevice{TeamID: e.team, HardwareID: unit})
	require.NoError(t, err)
	key, err := o.CreateAPIKey(t.Context(), roomsensor.Key{TeamID: e.team, Scope: roomsensor.ScopeRead})
	require.NoError(t, err)
	conn, err := pgx.Connect(t.Context(), e.database)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(t.Context())) }()

	cfg := apiConfig(primary.As(t, schema.RoleAPI))
	cfg.ReadDatabaseURL = config.Secret(standby.As(t, schema.RoleAPI))
	r := startAPI(t, cfg)
	ops, api := r.address("ops"), r.address("api")+"/v1"
	r.awaitReady()
	used := func(want float64) {
		require.Eventually(t, func() bool { return value(t, ops, "roomsensor_database_standby_used") == want },
			waitTimeout, 20*time.Millisecond)
	}
	used(1)
	at := time.Now().Add(-time.Hour).Truncate(roomsensor.BucketLength)
	readings := 0
	// check stores a reading, and requires that every read succeeds and that those of readings have it.
	check := func() {
		readings++
		_, err := conn.Exec(t.Context(), "INSERT INTO readings (device_id, bucket_at, co2_ppm) VALUES ($1, $2, 500)",
			device.DeviceID, at.Add(-time.Duration(readings)*roomsensor.BucketLength))
		require.NoError(t, err)
		for path, reading := range map[string]string{
			"/devices/" + device.DeviceID + "/readings": `"co2_ppm":500`, "/readings.csv": ",500,",
			"/devices/" + device.DeviceID + "/gaps": "", "/coverage": "",
		} {
			response, body := send(t, http.MethodGet, api+path, "Authorization", "Bearer "+key.Key)
			require.Equal(t, http.StatusOK, response.StatusCode, "%s: %s", path, body)
			if reading != "" {
				require.Equal(t, readings, strings.Count(body, reading), "%s: %s", path, body)
			}
		}
	}
	for value(t, ops, "roomsensor_database_standby_reads_total") < 10 { // A busy machine may take more than a few.
		check()
		require.Less(t, readings, 100)
	}

	require.NoError(t, standby.Kill())
	for range 5 {
		check()
	}
	used(0)
	// The first read that fails leaves the standby out; the check that follows logs it.
	require.Eventually(t, func() bool { return strings.Contains(r.log.String(), "not reading from a standby") },
		waitTimeout, 20*time.Millisecond)
	check()
	status, body := get(t, ops+"/readyz")
	require.Equal(t, http.StatusOK, status, body)
	standby.Start()
	used(1)
	check()
	require.NoError(t, r.end())
}

// value returns the value of a metric with one time series.
func value(t *testing.T, ops, name string) float64 {
	t.Helper()
	_, body := get(t, ops+"/metrics")
	found := regexp.MustCompile(`(?m)^` + name + `(?:\{[^}]*\})? (\S+)$`).FindStringSubmatch(body)
	require.NotNil(t, found, name)
	number, err := strconv.ParseFloat(found[1], 64)
	require.NoError(t, err)
	return number
}
