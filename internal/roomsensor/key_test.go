package roomsensor_test

import (
	"crypto/sha256"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
	"roomsensor/test/conformance"
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

	// A text of fewer characters, of another case, or with one other character is not a key.
	for i := range full {
		other := "a"
		if full[i] == 'a' {
			other = "b"
		}
		for _, bad := range []string{full[:i], full[:i] + full[i+1:], full[:i] + other + full[i+1:]} {
			_, _, ok := roomsensor.ParseKey(roomsensor.APIKey, bad)
			require.False(t, ok, "%q", bad)
		}
	}
	for _, bad := range []string{
		strings.ToUpper(full), full + "a", format("", "x"), format("x", ""), format("\x00", "x"), format("\xff", "x"),
		roomsensor.FormatKey(roomsensor.IngestKey, "x", "y"),
	} {
		_, _, ok := roomsensor.ParseKey(roomsensor.APIKey, bad)
		require.False(t, ok, "%q", bad)
	}
}

// The expected checksums were computed with Python: zlib.crc32 and base64.b32encode.
func TestFormatKey(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 44 a")
	require.Equal(t, "rsk_om4smmowqyzy7gny_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxjj5qr2", roomsensor.FormatKey(roomsensor.APIKey, "om4smmowqyzy7gny", "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"))
	require.Equal(t, "rsi_a_b_cnsbplj", roomsensor.FormatKey(roomsensor.IngestKey, "a", "b_c"))
	id, full, sum := roomsensor.GenerateKey(roomsensor.IngestKey)
	prefix := "rsi_" + id + "_"
	random := full[len(prefix) : len(full)-6]
	require.Equal(t, full, roomsensor.FormatKey(roomsensor.IngestKey, id, random))
	require.Equal(t, sha256.Sum256([]byte(full[len(prefix):])), sum)
	require.Len(t, random, 52, "256 bits")
}

func format(id, random string) string { return roomsensor.FormatKey(roomsensor.APIKey, id, random) }
