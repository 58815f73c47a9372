package api_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/test/conformance"
)

func TestOpenMetrics(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "A20.1", "A20.3")
	f := setup(t)
	f.fillDevice(t)
	f.exec(t, `INSERT INTO readings (device_id, bucket_at, co2_ppm, temp_c) VALUES
		($1, '2026-11-20 09:45Z', 600.5, -21.4), ($2, '2026-11-20 09:40Z', 601, NULL)`, deviceID, testID(0xde, 2))
	got := f.get(t, "/metrics")
	require.Equal(t, "application/openmetrics-text; version=1.0.0; charset=utf-8", got.header.Get("Content-Type"))
	requireGolden(t, "metrics.golden", got.body)
	require.Equal(t, 304, f.get(t, "/metrics", header("If-None-Match", got.header.Get("ETag"))).status)
	require.Contains(t, string(f.get(t, "/metrics?max_age=20m").body), `"} 601`+"\n")
	require.NotContains(t, string(f.get(t, "/metrics?max_age=14m").body), "600.5")
	for _, age := range []string{"4m", "25h", "2d", "15", "900s", ""} {
		f.get(t, "/metrics?max_age="+age).requireInvalid(t, "max_age")
	}

	large := setup(t)
	large.addDevices(t, 8193)
	large.get(t, "/metrics").requireInvalid(t, "metadata.<key>")
	large.get(t, "/metrics?metadata.floor=1").requireOK(t)
}

// TestOpenMetricsTags checks that neither labels nor tags make a body larger than its limit, or leave out devices.
func TestOpenMetricsTags(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "A20.3")
	f := setup(t)
	f.addDevices(t, 90)
	f.exec(t, `UPDATE devices SET metadata = jsonb_build_object('part', hardware_id::text) || (
		SELECT jsonb_object_agg('k' || i, repeat('𝄞', 500)) FROM generate_series(1, 49) i)`)
	f.exec(t, `UPDATE devices SET metadata = metadata || '{"part":"few"}' WHERE hardware_id < 'dev:4'`)
	labels := "labels=k1"
	for i := range 48 {
		labels += ",k" + strconv.Itoa(i+2)
	}
	require.Equal(t, 33, strings.Count(string(f.get(t, "/metrics?metadata.part=few").body), "roomsensor_status{"))
	f.get(t, "/metrics?metadata.part=few&"+labels).requireInvalid(t, "metadata.<key>")
	f.get(t, "/metrics").requireInvalid(t, "metadata.<key>")
}

func TestOpenMetricsLabels(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "A20.2")
	f := setup(t)
	f.fillDevice(t)
	body := string(f.get(t, "/metrics?metadata.floor=1&labels=room,a.b:c-d_e,none").body)
	require.Contains(t, body, `display_name="Gym <\"A\"> é",room="12",a_b_c_d_e="",status="online"} 1`)
	require.NotContains(t, body, testID(0xde, 2).String())
	for _, labels := range []string{"", "floor,", "floor,floor", "a.b,a_b", "status", "device_id", "display.name", "__x"} {
		f.get(t, "/metrics?labels="+labels).requireInvalid(t, "labels")
	}
}
