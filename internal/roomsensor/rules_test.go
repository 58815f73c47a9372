package roomsensor_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
)

func TestStatusAt(t *testing.T) {
	t.Parallel()
	ago := func(d time.Duration) *time.Time { return new(now.Add(-d)) }
	tests := []struct {
		name string
		seen *time.Time
		want roomsensor.Status
	}{
		{"never reported", nil, roomsensor.Offline},
		{"just now", ago(0), roomsensor.Online},
		{"ahead of this clock", ago(-time.Second), roomsensor.Online},
		{"just under an hour", ago(time.Hour - time.Microsecond), roomsensor.Online},
		{"an hour", ago(time.Hour), roomsensor.Stale},
		{"24 hours", ago(24 * time.Hour), roomsensor.Stale},
		{"just over 24 hours", ago(24*time.Hour + time.Microsecond), roomsensor.Offline},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, test.want, roomsensor.StatusAt(now, test.seen))
		})
	}
}

// Until the instant that StatusUntil names the status stays, and there it changes.
func TestStatusUntil(t *testing.T) {
	t.Parallel()
	for _, age := range []time.Duration{-time.Minute, 0, time.Hour - 1, time.Hour, 24 * time.Hour} {
		seen := now.Add(-age)
		until := roomsensor.StatusUntil(now, &seen)
		require.True(t, until.After(now), age)
		was := roomsensor.StatusAt(now, &seen)
		require.Equal(t, was, roomsensor.StatusAt(until.Add(-1), &seen), age)
		require.NotEqual(t, was, roomsensor.StatusAt(until, &seen), age)
	}
	seen := now.Add(-24*time.Hour - 1)
	require.Equal(t, roomsensor.Forever, roomsensor.StatusUntil(now, &seen))
	require.Equal(t, roomsensor.Forever, roomsensor.StatusUntil(now, nil))
}

func TestSummaryWindow(t *testing.T) {
	t.Parallel()
	require.Equal(t, "2026-03-09T13:00:00Z", roomsensor.FormatTime(roomsensor.SummaryWindow(now).From))
}

func TestIsHardwareID(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"dev:1", "dev:864475046552567", "dev:" + strings.Repeat("9", 20)} {
		require.True(t, roomsensor.IsHardwareID(id), id)
	}
	for _, id := range []string{"", "dev:", "1", "DEV:1", "dev:1a", "dev:-1", "dev:1 ", "dev:１", "dev:" + strings.Repeat("9", 21)} {
		require.False(t, roomsensor.IsHardwareID(id), id)
	}
}

func TestCheckName(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"Room 1", "é", strings.Repeat("界", 200), " ", "=1+1"} {
		require.NoError(t, roomsensor.CheckName(name))
	}
	for _, name := range []string{"", strings.Repeat("界", 201), "a\nb", "a\x00", "a\u0085b", "\xff"} {
		require.Error(t, roomsensor.CheckName(name), "%q", name)
	}
}

func TestCheckMetadata(t *testing.T) {
	t.Parallel()
	many := map[string]string{}
	for i := range roomsensor.MaxMetadataKeys {
		many[strings.Repeat("k", i+1)] = "v"
	}
	for _, tags := range []map[string]string{nil, {"a": ""}, {"A-Z_0.9:x": strings.Repeat("界", 500)}, {strings.Repeat("k", 64): "v"}, many} {
		require.NoError(t, roomsensor.CheckMetadata(tags))
	}
	many["one more"] = "v"
	for _, tags := range []map[string]string{
		{"": "v"},
		{strings.Repeat("k", 65): "v"},
		{"a b": "v"},
		{"é": "v"},
		{"a": strings.Repeat("x", 501)},
		{"a": "\x00"},
		{"a": "\xff"},
		many,
	} {
		require.Error(t, roomsensor.CheckMetadata(tags))
	}
}

func TestMetadataPatch(t *testing.T) {
	t.Parallel()
	stored := map[string]string{"a": "1", "b": "2"}
	tests := []struct {
		name  string
		patch roomsensor.MetadataPatch
		want  map[string]string
	}{
		{"an empty object changes nothing", roomsensor.MetadataPatch{}, map[string]string{"a": "1", "b": "2"}},
		{"a listed key is set", roomsensor.MetadataPatch{Values: map[string]*string{"a": new("9"), "c": new("")}}, map[string]string{"a": "9", "b": "2", "c": ""}},
		{"a null value removes its key", roomsensor.MetadataPatch{Values: map[string]*string{"a": nil, "x": nil}}, map[string]string{"b": "2"}},
		{"null clears all", roomsensor.MetadataPatch{Clear: true}, map[string]string{}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, test.want, test.patch.Apply(stored))
			require.Len(t, stored, 2, "the stored tags are not touched")
		})
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	id, full, sum := roomsensor.GenerateKey(roomsensor.APIKey)
	gotID, secret, ok := roomsensor.ParseKey(roomsensor.APIKey, full)
	require.True(t, ok)
	require.Equal(t, id, gotID)
	key := roomsensor.Key{ID: id, SecretSHA256: sum}
	require.True(t, key.Matches(secret))
	require.False(t, key.Matches(secret+"x"))
	require.False(t, (&roomsensor.Key{}).Matches(secret), "the zero key matches nothing")

	for _, bad := range []string{"", "rsk", "rsk_", "rsk__x", "rsk_x", "rsk_x_", "rsi_x_y", "RSK_x_y", "rsk_\x00_y", "rsk_\xff_y"} {
		_, _, ok := roomsensor.ParseKey(roomsensor.APIKey, bad)
		require.False(t, ok, "%q", bad)
	}
}

func TestEveryCodeIsComplete(t *testing.T) {
	t.Parallel()
	seen := map[roomsensor.Code]bool{}
	for _, info := range roomsensor.Codes {
		require.False(t, seen[info.Code], info.Code)
		seen[info.Code] = true
		require.GreaterOrEqual(t, info.Status, 400)
		for _, text := range []string{info.Cause, info.Message, info.Fix, info.Retry} {
			require.NotEmpty(t, text, info.Code)
		}
		require.Equal(t, info.Status, info.Code.Status())
		require.Equal(t, info.Message, info.Code.New().Message)
	}
}
