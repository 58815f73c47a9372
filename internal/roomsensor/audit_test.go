package roomsensor_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
)

func TestAuditDifferences(t *testing.T) {
	t.Parallel()
	entry := roomsensor.AuditEntry{
		Before: []byte(`{"metadata": {"floor": "1", "old": "x"}, "expires_at": null}`),
		After:  []byte(`{"metadata": {"floor": "2"}, "expires_at": "2026-01-01T00:00:00Z", "count": 3, "list": ["a"]}`),
	}
	differences, err := entry.Differences()
	require.NoError(t, err)
	require.Equal(t, []roomsensor.Difference{
		{"count", nil, new("3")},
		{"expires_at", nil, new("2026-01-01T00:00:00Z")},
		{"list", nil, new(`["a"]`)},
		{"metadata.floor", new("1"), new("2")},
		{"metadata.old", new("x"), nil},
	}, differences)

	entry = roomsensor.AuditEntry{Before: []byte(`{"name": "Club"}`)}
	differences, err = entry.Differences()
	require.NoError(t, err)
	require.Equal(t, []roomsensor.Difference{{"name", new("Club"), nil}}, differences)

	entry = roomsensor.AuditEntry{Before: []byte(`[]`)}
	_, err = entry.Differences()
	require.Error(t, err)
}
