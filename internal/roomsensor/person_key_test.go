package roomsensor_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
)

// TestPerson checks which assignments name the same person.
func TestPerson(t *testing.T) {
	t.Parallel()
	athlete := func(label string, ref *string) *roomsensor.Assignment {
		return &roomsensor.Assignment{Type: roomsensor.Athlete, Label: label, ExternalRef: ref}
	}
	maya, ok := athlete("Maya Okafor", nil).Person()
	require.True(t, ok)
	for _, label := range []string{"Maya Okafor", " maya okafor ", "MAYA OKAFOR\u00a0"} {
		require.True(t, athlete(label, nil).IsPerson(maya), label)
	}
	for _, label := range []string{"Maya  Okafor", "MayaOkafor", "Maya Okafor 2", ""} {
		require.False(t, athlete(label, nil).IsPerson(maya), label)
	}
	umlaut, _ := athlete("Ωmega Süd", nil).Person()
	require.True(t, athlete("ωMEGA SÜD", nil).IsPerson(umlaut))

	// With a reference, the label does not count, and its letter case does.
	numbered, _ := athlete("Maya Okafor", new("crm-7")).Person()
	require.True(t, athlete("M. Okafor", new("crm-7")).IsPerson(numbered))
	for _, other := range []*roomsensor.Assignment{
		athlete("Maya Okafor", nil), athlete("Maya Okafor", new("CRM-7")), athlete("crm-7", nil),
	} {
		require.False(t, other.IsPerson(numbered))
	}
	require.True(t, athlete("Maya Okafor", new("")).IsPerson(maya))

	place := athlete("Maya Okafor", nil)
	place.Type = roomsensor.Place
	_, ok = place.Person()
	require.False(t, ok)
	require.False(t, place.IsPerson(maya))
}
