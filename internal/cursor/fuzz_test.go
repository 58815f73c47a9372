package cursor

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
)

// FuzzOpen checks that Open accepts no text from outside.
func FuzzOpen(f *testing.F) {
	s, err := NewSealer(make([]byte, SecretBytes))
	require.NoError(f, err)
	for _, seed := range []string{"", "AQ", "AAAA", "cursor", "AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		_, err := s.Open(text)
		require.ErrorIs(t, err, ErrCorrupted)
	})
}

// FuzzUnmarshal decodes arbitrary authenticated bytes, such as those of a cursor with an older encoding.
func FuzzUnmarshal(f *testing.F) {
	at := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	id := uuid.MustParse("0b5e7a52-6c1f-4f0a-9d3e-2f6a1c8b7d90")
	full := State{
		Endpoint: Readings, KeyID: "key", Device: id, IssuedAt: at, Limit: 1000,
		Filters: map[string]string{"room": "12", "floor": ""},
		Request: roomsensor.WindowRequest{From: &at, To: &at, Last: time.Hour}, Assignment: &id,
		Window: roomsensor.Window{From: at, To: roomsensor.Forever}, At: at, ID: id,
	}
	f.Add(full.marshal())
	f.Add((&State{}).marshal())
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, plain []byte) {
		w, err := unmarshal(plain)
		if err != nil {
			require.ErrorIs(t, err, ErrCorrupted)
			return
		}
		again, err := unmarshal(w.marshal())
		require.NoError(t, err)
		require.Equal(t, w, again)
	})
}
