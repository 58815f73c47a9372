package roomsensor_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
)

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
