package roomsensor_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
)

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

	future := now.Add(time.Second)
	_, err = roomsensor.EffectiveTime(&future, now)
	var refused *roomsensor.FutureError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, future, refused.At)
}
