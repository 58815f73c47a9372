package teamcache_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/teamcache"
)

// A value that is dropped late keeps others in memory for a moment only.
func TestValuesTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		values := teamcache.NewValues[value](maxBytes)
		keep := func(n byte, lifetime time.Duration) {
			values.Keep(team(n), teamcache.Entry[value]{Value: &value{}, Bytes: 1, Until: time.Now().Add(lifetime)})
		}
		keep(0, time.Hour)
		for n := byte(1); n < 100; n++ {
			keep(n, time.Second)
		}
		time.Sleep(time.Minute) // The clock is the bubble's.
		for range 99 {
			keep(200, time.Hour)
		}
		for n := byte(1); n < 100; n++ {
			require.Nil(t, values.Kept(team(n)))
		}
		require.NotNil(t, values.Kept(team(0)))
		require.NotNil(t, values.Kept(team(200)))
	})
}

// Of small and large values, only so many are dropped as the new one needs. A value that takes more than a third of the
// memory is not kept.
func TestValuesBytes(t *testing.T) {
	t.Parallel()
	values := teamcache.NewValues[value](maxBytes)
	keep := func(n byte, bytes int) {
		values.Keep(team(n), teamcache.Entry[value]{Value: &value{}, Bytes: bytes, Until: time.Now().Add(time.Hour)})
	}
	kept := func() (teams []byte) {
		for n := range byte(10) {
			if values.Kept(team(n)) != nil {
				teams = append(teams, n)
			}
		}
		return teams
	}
	for n := range byte(8) {
		keep(n, 100)
	}
	require.NotNil(t, values.Kept(team(0)))
	keep(9, 300)
	require.Equal(t, []byte{0, 3, 4, 5, 6, 7, 9}, kept(), "1 and 2 were not used for longest")
	keep(9, 100)
	keep(1, 200)
	require.Equal(t, []byte{0, 1, 3, 4, 5, 6, 7, 9}, kept(), "what a team had before does not count")
	keep(9, maxBytes/3+1)
	require.Equal(t, []byte{0, 1, 3, 4, 5, 6, 7}, kept(), "too large")
}
