package cursor_test

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"roomsensor/internal/cursor"
	"roomsensor/internal/roomsensor"
)

func newSealer(t require.TestingT, fill byte) *cursor.Sealer {
	secret := make([]byte, cursor.SecretBytes)
	for i := range secret {
		secret[i] = fill
	}
	s, err := cursor.NewSealer(secret)
	require.NoError(t, err)
	return s
}

func instants() *rapid.Generator[time.Time] {
	return rapid.Custom(func(t *rapid.T) time.Time {
		return time.UnixMicro(rapid.Int64Range(0, roomsensor.Forever.UnixMicro()).Draw(t, "µs")).UTC()
	})
}

func ids() *rapid.Generator[uuid.UUID] {
	return rapid.Custom(func(t *rapid.T) uuid.UUID {
		return uuid.UUID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "id"))
	})
}

func states() *rapid.Generator[*cursor.State] {
	return rapid.Custom(func(t *rapid.T) *cursor.State {
		w := &cursor.State{
			Endpoint: cursor.Endpoint(rapid.ByteRange(1, 4).Draw(t, "endpoint")),
			KeyID:    rapid.String().Draw(t, "key"),
			Device:   ids().Draw(t, "device"),
			IssuedAt: instants().Draw(t, "issued"),
			Limit:    rapid.IntRange(1, 1000).Draw(t, "limit"),
			Window:   roomsensor.Window{From: instants().Draw(t, "from"), To: instants().Draw(t, "to")},
			At:       instants().Draw(t, "at"),
			ID:       ids().Draw(t, "id"),
		}
		if tags := rapid.MapOfN(rapid.String(), rapid.String(), 0, 5).Draw(t, "tags"); len(tags) > 0 {
			w.Filters = tags
		}
		w.Request.From = rapid.Ptr(instants(), true).Draw(t, "request from")
		w.Request.To = rapid.Ptr(instants(), true).Draw(t, "request to")
		w.Request.Last = time.Duration(rapid.Int64Range(0, int64(roomsensor.MaxWindow)).Draw(t, "last"))
		if rapid.Bool().Draw(t, "depends on now") {
			w.Now = instants().Draw(t, "now")
		}
		w.Assignment = rapid.Ptr(ids(), true).Draw(t, "assignment")
		if rapid.Bool().Draw(t, "has devices") {
			w.IDs = rapid.SliceOfN(ids(), 0, 3).Draw(t, "devices")
		}
		if rapid.Bool().Draw(t, "has sent") {
			w.Sent = rapid.SliceOfN(rapid.Uint64(), 0, 3).Draw(t, "sent")
		}
		return w
	})
}

func TestSealOpen(t *testing.T) {
	t.Parallel()
	s := newSealer(t, 1)
	rapid.Check(t, func(t *rapid.T) {
		w := states().Draw(t, "state")
		got, err := newSealer(t, 1).Open(s.Seal(w)) // As on another replica.
		require.NoError(t, err)
		require.Equal(t, w, got)
	})
}

// The cursor of a night with the most assignments (A17.2) fits into the header of a request, of 64 KiB.
func TestSealNight(t *testing.T) {
	t.Parallel()
	text := newSealer(t, 1).Seal(&cursor.State{Endpoint: cursor.Nights, KeyID: "k", Limit: 1, Sent: make([]uint64, 4999)})
	require.Less(t, len(text), 60<<10)
}

func TestOpenTampered(t *testing.T) {
	t.Parallel()
	s := newSealer(t, 1)
	text := s.Seal(&cursor.State{Endpoint: cursor.Readings, KeyID: "k", Limit: 10})
	raw, err := base64.RawURLEncoding.DecodeString(text)
	require.NoError(t, err)
	for bit := range len(raw) * 8 {
		bent := append([]byte{}, raw...)
		bent[bit/8] ^= 1 << (bit % 8)
		_, err := s.Open(base64.RawURLEncoding.EncodeToString(bent))
		require.ErrorIs(t, err, cursor.ErrCorrupted, "bit %d", bit)
	}
	for n := range raw {
		_, err := s.Open(base64.RawURLEncoding.EncodeToString(raw[:n]))
		require.ErrorIs(t, err, cursor.ErrCorrupted, "%d bytes", n)
	}
}

func TestOpenOneSpelling(t *testing.T) {
	t.Parallel()
	s := newSealer(t, 1)
	text := s.Seal(&cursor.State{Endpoint: cursor.Devices, KeyID: "key", Limit: 10})
	require.NotContains(t, text, "=")
	for name, bent := range map[string]string{
		"empty": "", "line feed": text + "\n", "carriage return": "\r" + text, "padded": text + "=",
		"space": text + " ", "doubled": text + text, "words": "last=24h", "upper case": strings.ToUpper(text),
	} {
		_, err := s.Open(bent)
		require.ErrorIs(t, err, cursor.ErrCorrupted, name)
	}
}

func TestOpenOtherSecret(t *testing.T) {
	t.Parallel()
	text := newSealer(t, 1).Seal(&cursor.State{Endpoint: cursor.Devices})
	_, err := newSealer(t, 2).Open(text)
	require.ErrorIs(t, err, cursor.ErrCorrupted)
	_, err = cursor.NewSealer([]byte("too short"))
	require.ErrorContains(t, err, "32")
}
