package roomsensor_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
)

func instant(t require.TestingT, text string) time.Time {
	at, ok := roomsensor.ParseTime(text)
	require.True(t, ok, text)
	return at
}

func TestEffectiveTime(t *testing.T) {
	t.Parallel()
	now := instant(t, "2026-01-02T00:00:00.123456789Z")
	past := instant(t, "2026-01-01T00:00:00Z")
	effective, err := roomsensor.EffectiveTime(&past, now)
	require.NoError(t, err)
	require.Equal(t, past, effective)
	effective, err = roomsensor.EffectiveTime(nil, now)
	require.NoError(t, err)
	require.Equal(t, instant(t, "2026-01-02T00:00:00.123456Z"), effective)

	for at, want := range map[time.Time]string{
		now.Add(time.Second): "is in the future", roomsensor.MeasuredFrom.Add(-1): "is before 2015", {}: "is before 2015",
	} {
		_, err = roomsensor.EffectiveTime(&at, now)
		require.ErrorContains(t, err, want)
	}
}
