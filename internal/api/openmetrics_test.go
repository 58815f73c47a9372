package api_test

import (
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
