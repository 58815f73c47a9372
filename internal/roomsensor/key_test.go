package roomsensor_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
)

func TestParseKey(t *testing.T) {
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
