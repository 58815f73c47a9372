package roomsensor_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
)

func TestIsHardwareID(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"dev:1", "dev:864475046552567", "dev:" + strings.Repeat("9", 20)} {
		require.True(t, roomsensor.IsHardwareID(id), id)
	}
	for _, id := range []string{"", "dev:", "1", "DEV:1", "dev:1a", "dev:-1", "dev:1 ", "dev:１", "dev:" + strings.Repeat("9", 21)} {
		require.False(t, roomsensor.IsHardwareID(id), id)
	}
}

func TestCheckName(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"Room 1", "é", strings.Repeat("界", 200), " ", "=1+1"} {
		require.NoError(t, roomsensor.CheckName(name))
	}
	for _, name := range []string{"", strings.Repeat("界", 201), "a\nb", "a\x00", "a\u0085b", "\xff"} {
		require.Error(t, roomsensor.CheckName(name), "%q", name)
	}
}

func TestCheckMetadata(t *testing.T) {
	t.Parallel()
	many := map[string]string{}
	for i := range roomsensor.MaxMetadataKeys {
		many[strings.Repeat("k", i+1)] = "v"
	}
	for _, tags := range []map[string]string{nil, {"a": ""}, {"A-Z_0.9:x": strings.Repeat("界", 500)}, {strings.Repeat("k", 64): "v"}, many} {
		require.NoError(t, roomsensor.CheckMetadata(tags))
	}
	many["one more"] = "v"
	for _, tags := range []map[string]string{
		{"": "v"},
		{strings.Repeat("k", 65): "v"},
		{"a b": "v"},
		{"é": "v"},
		{"a": strings.Repeat("x", 501)},
		{"a": "\x00"},
		{"a": "\xff"},
		many,
	} {
		require.Error(t, roomsensor.CheckMetadata(tags))
	}
}

func TestCheckPassword(t *testing.T) {
	t.Parallel()
	about := []string{"Kim Novak", "Riverside Athletics"}
	for password, want := range map[string]string{
		"correct horse battery staple":  "",
		"ein Satz über Räume":           "",
		"elevenchars":                   "must have at least 12 characters",
		"ELEVENCHARS!":                  "", // No rule about digits, signs or letter case.
		"zwölfzeichen":                  "",
		strings.Repeat("ab cd ef", 25):  "",
		strings.Repeat("ab cd ef", 26):  "must have at most 200 characters",
		"nul\x00 in a password":         "cannot be stored",
		"Kim.Novak@Example.com":         "must not be the email address",
		"Riverside-Novak-1":             "must have at least 8 characters beside",
		"roomsensor2026":                "must have at least 8 characters beside",
		"PasswordPassword1234":          "must have at least 8 characters beside",
		"1234567890123":                 "must have at least 8 characters beside",
		"the password of my first room": "",
	} {
		err := roomsensor.CheckPassword(password, "kim.novak@example.com", about...)
		if want == "" {
			require.NoError(t, err, password)
		} else {
			require.ErrorContains(t, err, want, password)
		}
	}
}
