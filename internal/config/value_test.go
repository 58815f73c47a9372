package config_test

import (
	"encoding"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/config"
)

// value is a pointer to a value that is parsed from text and printed as text.
type value[T any] interface {
	*T
	encoding.TextUnmarshaler
	fmt.Stringer
}

// requireParsed checks that a text is parsed to a value and that this value is printed as want.
func requireParsed[T any, P value[T]](t *testing.T, text, want string, parsed T) {
	t.Helper()
	v := P(new(T))
	require.NoError(t, v.UnmarshalText([]byte(text)), text)
	require.Equal(t, parsed, *v, text)
	require.Equal(t, want, v.String(), text)
}

const day = 24 * time.Hour

func TestDuration(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{"15s": 15 * time.Second, "90m": 90 * time.Minute, "36h": 36 * time.Hour, "90d": 90 * day} {
		requireParsed(t, text, text, config.Duration(want))
	}
	requireParsed(t, "48h", "2d", config.Duration(2*day))
	for _, text := range []string{
		"", "d", "7", "0d", "-1d", "+1d", "1.5h", "1w", "1d12h", " 1d", "never", "forever", "99999999d", "99999999999999999999d",
	} {
		require.ErrorContains(t, new(config.Duration).UnmarshalText([]byte(text)), "is not a duration", text)
	}
}

func TestAge(t *testing.T) {
	t.Parallel()
	requireParsed(t, "never", "never", config.Age(0))
	requireParsed(t, "30d", "30d", config.Age(30*day))
	for _, text := range []string{"", "0d", "soon"} {
		require.ErrorContains(t, new(config.Age).UnmarshalText([]byte(text)), "or the word never", text)
	}
}

func TestChunkInterval(t *testing.T) {
	t.Parallel()
	requireParsed(t, "auto", "auto", config.ChunkIntervalAuto)
	requireParsed(t, "3d", "3d", config.ChunkInterval(3*day))
	require.Empty(t, config.ChunkIntervalUnchanged.String())
	for _, text := range []string{"", "0d", "-1d", "Auto"} {
		require.ErrorContains(t, new(config.ChunkInterval).UnmarshalText([]byte(text)), "or the word auto", text)
	}
}

func TestSize(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]config.Size{"16MiB": 16 << 20, "8GiB": 8 << 30, "1TiB": 1 << 40} {
		requireParsed(t, text, text, want)
	}
	for _, text := range []string{"", "MiB", "1", "0GiB", "-1GiB", "+1GiB", "1.5GiB", "1gib", "8GB", "1KiB", "99999999TiB"} {
		require.ErrorContains(t, new(config.Size).UnmarshalText([]byte(text)), "is not a size", text)
	}
}

func TestDailyWindow(t *testing.T) {
	t.Parallel()
	for text, hours := range map[string]map[string]bool{
		"never":       {"00:00": false, "03:00": false},
		"02:00-04:30": {"01:59": false, "02:00": true, "04:29": true, "04:30": false},
		"23:00-01:00": {"22:59": false, "23:00": true, "00:59": true, "01:00": false, "12:00": false},
	} {
		var w config.DailyWindow
		require.NoError(t, w.UnmarshalText([]byte(text)))
		require.Equal(t, text, w.String())
		for hour, want := range hours {
			at, err := time.Parse(time.DateTime, "2026-11-21 "+hour+":00")
			require.NoError(t, err)
			require.Equal(t, want, w.Contains(at), "%s at %s", text, hour)
			require.Equal(t, want, w.Contains(at.In(time.FixedZone("far", 5*3600))), "the window is in UTC")
		}
	}
	for _, text := range []string{"", "02:00", "2:00-4:00", "02:00-02:00", "02:00-24:30", "02:00/04:00", "off", " 02:00-04:00"} {
		require.Error(t, new(config.DailyWindow).UnmarshalText([]byte(text)), text)
	}
	require.False(t, config.DailyWindow{}.Contains(time.Now()))
}

func TestSecret(t *testing.T) {
	t.Parallel()
	url := config.Secret("nats://user:secret@queue")
	encoded, err := json.Marshal(map[string]any{"url": url})
	require.NoError(t, err)
	for _, text := range []string{url.String(), fmt.Sprintf("%v %s %+v %#v", url, url, url, url), string(encoded)} {
		require.NotContains(t, text, "secret")
		require.Contains(t, text, "nats://user:xxxxx@queue")
	}
}
