package timezone_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/timezone"
)

func TestLoad(t *testing.T) {
	t.Parallel()
	names := timezone.Names()
	require.Greater(t, len(names), 500)
	for _, name := range names {
		zone, ok := timezone.Load(name)
		require.True(t, ok, name)
		require.Equal(t, name, zone.String())
	}
	at := time.Date(2026, time.July, 1, 12, 0, 0, 0, time.UTC)
	for name, want := range map[string]string{
		"UTC": "+00:00", "Europe/Berlin": "+02:00", "America/New_York": "-04:00", "Asia/Kathmandu": "+05:45",
		"Australia/Lord_Howe": "+10:30", "Asia/Calcutta": "+05:30", "Etc/GMT+5": "-05:00",
	} {
		zone, ok := timezone.Load(name)
		require.True(t, ok, name)
		require.Equal(t, want, at.In(zone).Format("-07:00"), name)
	}
	for _, name := range []string{
		"", "Local", "local", "europe/berlin", "EUROPE/BERLIN", "utc", "Utc", "Z", "+02:00", "-05", "UTC+2", "GMT+2", "CEST",
		"Europe/Berlin ", " UTC", "Europe/", "Europe", "/Europe/Berlin", "./UTC", "../UTC", "Europe//Berlin", "posix/UTC",
		"right/UTC", "localtime", "posixrules", "tzdata.zi", "Europe/Atlantis", "\x00", "\xff",
	} {
		_, ok := timezone.Load(name)
		require.False(t, ok, name)
	}
}

func TestFind(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"New York": "America/New_York", " berlin ": "Europe/Berlin", "america/argentina": "", "UTC": "UTC", "": "",
		"Europe/Berlin": "Europe/Berlin", "Louisville": "", "Kentucky/Louisville": "America/Kentucky/Louisville", "Atlantis": "",
	} {
		zone, ok := timezone.Find(text)
		require.Equal(t, want != "", ok, text)
		if ok {
			require.Equal(t, want, zone.String(), text)
		}
	}
}
