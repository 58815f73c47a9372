package roomsensor_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
)

// Aliases of hexadecimal digits are compared by their digits, all others by their bytes (A12.1).
func TestNormalizeAlias(t *testing.T) {
	t.Parallel()
	const digits = "a84041ffff1f0a2b"
	for _, alias := range []string{
		digits, "A84041FFFF1F0A2B", "eui-a84041ffff1f0a2b", "dev:a84041ffff1f0a2b", "A8:40:41:FF:FF:1F:0A:2B",
		"a8-40-41-ff-ff-1f-0a-2b", "a8.40.41.ff.ff.1f.0a.2b", "a840.41ff.ff1f.0a2b", "eui-a840-41FF-ff1f-0a2b",
		"EUI-A84041FFFF1F0A2B", "0xa84041ffff1f0a2b", "0XA84041FFFF1F0A2B",
	} {
		require.Equal(t, digits, roomsensor.NormalizeAlias(alias), alias)
	}
	require.Equal(t, "ecda3b1eaaaf", roomsensor.NormalizeAlias("EC:DA:3B:1E:AA:AF"))
	require.Equal(t, "864475046552567", roomsensor.NormalizeAlias("864475046552567"))
	for _, alias := range []string{
		"Kitchen", "kitchen", "a84041ffff1", "A84041FFFF1F0A2B0", "A8:40:41:FF:FF:1F:0A:2", "A8:40-41:FF:FF:1F",
		"A840:41FF:FF1F:0A", "EUI-A84041FFFF1F0A2B0", "A84041FFFF1G", "dev:eui-A84041FFFF1F", "A84:041:FFF:F1F", "",
		"A8:40:41:FF:FF:1F:", "Å84041ffff1f",
	} {
		require.Equal(t, alias, roomsensor.NormalizeAlias(alias))
	}
}

// The service gives a unit with an alias of hexadecimal digits their decimal value (A12.2).
func TestAliasHardwareID(t *testing.T) {
	t.Parallel()
	for alias, want := range map[string]string{
		"ffff-ffff-ffff-ffff": "dev:18446744073709551615",
		"00:00:00:00:00:10":   "dev:16",
		"dev:ecda3b1eaaaf":    "dev:260422038891183",
	} {
		id, ok := roomsensor.AliasHardwareID(alias)
		require.True(t, ok, alias)
		require.Equal(t, want, id)
		require.True(t, roomsensor.IsHardwareID(id))
	}
	_, ok := roomsensor.AliasHardwareID("Kitchen")
	require.False(t, ok)
}

func TestCheckAlias(t *testing.T) {
	t.Parallel()
	for _, alias := range []string{"x", strings.Repeat("界", 200), "dev:ecda3b1eaaaf", "0x00158d0001e4c1a2", "dev:", "eui-1"} {
		require.NoError(t, roomsensor.CheckAlias(alias), alias)
	}
	for _, alias := range []string{"", strings.Repeat("界", 201), "a\tb", "\xff", "dev:1", "dev:864475046552567"} {
		require.Error(t, roomsensor.CheckAlias(alias), "%q", alias)
	}
	for alias, write := range map[string]string{
		"A8 40 41 B9 D1 C2 00 04": "A84041B9D1C20004", " a84041b9d1c2\u00a0": "a84041b9d1c2",
	} {
		require.ErrorContains(t, roomsensor.CheckAlias(alias), "Write "+write)
	}
}
