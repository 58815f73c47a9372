package roomsensor_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
)

func TestNoteIsOf(t *testing.T) {
	t.Parallel()
	from := time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)
	room, other, end := uuid.New(), uuid.New(), from.Add(24*time.Hour)
	ana := roomsensor.Assignment{DeviceID: room, Type: roomsensor.Athlete, Label: "Ana", StartedAt: from, EndedAt: &end}
	hall := roomsensor.Assignment{DeviceID: room, Type: roomsensor.Place, Label: "Ana", StartedAt: from}
	elsewhere := roomsensor.Assignment{Type: roomsensor.Athlete, Label: " ANA"}
	place := roomsensor.Assignment{Type: roomsensor.Place, Label: "Ana"}
	for name, c := range map[string]struct {
		note roomsensor.Note
		of   roomsensor.Assignment
		want bool
	}{
		"a device":                       {roomsensor.Note{DeviceID: room, At: from}, ana, true},
		"another device":                 {roomsensor.Note{DeviceID: other, At: from}, ana, false},
		"after the end":                  {roomsensor.Note{DeviceID: room, At: end}, ana, false},
		"a person, from another room":    {roomsensor.Note{DeviceID: other, Assignment: &elsewhere, At: from}, ana, true},
		"a person, not the room":         {roomsensor.Note{DeviceID: room, Assignment: &elsewhere, At: from}, hall, false},
		"an assignment that was changed": {roomsensor.Note{DeviceID: room, Assignment: &place, At: from}, hall, true},
	} {
		require.Equal(t, c.want, c.note.IsOf(&c.of), name)
	}
}

func TestCheckNote(t *testing.T) {
	t.Parallel()
	require.NoError(t, roomsensor.CheckNote(strings.Repeat("é", 500)))
	require.EqualError(t, roomsensor.CheckNote(strings.Repeat("é", 501)), "has 501 characters; at most 500 are allowed")
	require.EqualError(t, roomsensor.CheckNote(""), "must not be empty")
}
