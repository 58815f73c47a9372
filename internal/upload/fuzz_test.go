package upload_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/upload"
)

// FuzzParse checks for any text that the result can be stored, and that Parse and Check agree.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		``, `{}`, `[1]`, `{"hardware_id":"dev:1","readings":[]}`,
		`{"hardware_id":"dev:1","sent_at":"2026-11-20T10:00:07Z","firmware_version":"2.4.1","signal":{"rssi_dbm":-87,"bars":2},"readings":[{"measured_at":"2026-11-20T09:55:03Z","co2_ppm":612,"temp_c":-0.0,"lux":1e400}]}`,
		`{"hardware_id":"dev:1","readings":[{"measured_at":"2026-11-20T09:55:03.9999999Z","spl_db":"x"},null,[{}]],"signal":[]}`,
		`{"readings" : [ 1 , {"a":"\u005d"} ] , "hardware\u005fid":"dev:1"}`,
		`{"hardware_id":"dev:1","readings":[{"a":1,"a":2}]}`, `{"hardware_id":"dev:1","a":{},"signal":{"b":1},"readings":[{"a":1},{"c":2}]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		u, refusal := upload.Parse(text, "dev:1", arrived)
		heading, checked := upload.Check(text)
		if refusal != nil {
			require.Nil(t, u)
			require.True(t, roomsensor.IsPlain(refusal.Detail))
			require.False(t, checked == nil && heading.HardwareID == "dev:1")
			return
		}
		require.Nil(t, checked)
		require.Equal(t, upload.Heading{HardwareID: "dev:1", Readings: len(u.Readings), Ignored: u.Ignored}, heading)
		all := make([]int, len(u.Readings))
		for i := range all {
			all[i] = i
			requirePlausible(t, &u.Readings[i])
		}
		requireSame(t, u, u.Part(all))
		_, refusal = upload.Parse(u.Part(nil), "dev:1", arrived)
		require.Nil(t, refusal)
	})
}

func requirePlausible(t *testing.T, r *upload.Reading) {
	t.Helper()
	if r.Problem == "" {
		require.False(t, r.MeasuredAt.Before(roomsensor.MeasuredFrom))
		require.False(t, r.MeasuredAt.After(arrived.Add(roomsensor.MeasuredAhead)))
	}
	require.Zero(t, r.BadValues&r.Values.Mask())
	for _, m := range roomsensor.Metrics {
		least, greatest := m.Range()
		x, _ := r.Values.Get(m)
		require.False(t, float64(x) < min(least, 0) || float64(x) > greatest)
	}
}

// requireSame checks that the payload of a reject parses to the same upload.
func requireSame(t *testing.T, u *upload.Upload, part []byte) {
	t.Helper()
	again, refusal := upload.Parse(part, "dev:1", arrived)
	require.Nil(t, refusal)
	require.Equal(t, u.Signal, again.Signal)
	require.Equal(t, u.Firmware, again.Firmware)
	require.Equal(t, u.BadFields, again.BadFields)
	require.Len(t, again.Readings, len(u.Readings))
	for i := range u.Readings {
		require.Equal(t, u.Readings[i].Measurement, again.Readings[i].Measurement)
		require.Equal(t, u.Readings[i].Problem, again.Readings[i].Problem)
		require.Equal(t, u.Readings[i].BadValues, again.Readings[i].BadValues)
	}
}
