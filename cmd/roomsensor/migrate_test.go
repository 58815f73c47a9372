package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/dbtest"
)

func TestMigrate(t *testing.T) {
	t.Parallel()
	o := &operator{t, map[string]string{"DATABASE_URL": dbtest.Empty(t).URL}}

	status := o.do("migrate", "status")
	require.Nil(t, status["edition"])
	require.Nil(t, status["timescaledb_version"])
	require.Equal(t, false, status["up_to_date"])
	require.NotEmpty(t, status["data"])
	for _, migration := range migrations(t, status) {
		require.Nil(t, migration["applied_at"])
	}
	o.fails(exitFailure, "Run roomsensor migrate up", "team", "list")
	o.fails(exitFailure, "Run roomsensor migrate up", "team", "create", "--name", "x")
	o.fails(exitFailure, "Run roomsensor migrate up", "rejects", "list")
	o.fails(exitFailure, "there is none to take back", "migrate", "down")

	up := o.do("migrate", "up")
	require.Equal(t, dbtest.Edition(t), up["edition"])
	require.Regexp(t, `^\d+\.\d+\.\d+`, up["timescaledb_version"])
	require.Equal(t, true, up["up_to_date"])
	require.Nil(t, status["readings"])
	layout, ok := up["readings"].(map[string]any)
	require.True(t, ok)
	require.InDelta(t, 0, layout["chunks"], 0)
	require.Nil(t, layout["keep_seconds"])
	require.Equal(t, dbtest.Edition(t) == "community", layout["columnstore"] != nil)
	require.Equal(t, dbtest.Edition(t) == "community", layout["hourly"] != nil)
	for _, migration := range migrations(t, up) {
		require.Regexp(t, `Z$`, migration["applied_at"])
		require.Regexp(t, `\.sql$`, migration["name"])
	}
	require.Equal(t, up, o.do("migrate", "up"), "nothing is left to do")
	require.Equal(t, up, o.do("migrate", "status"))
	require.Empty(t, o.data("team", "list"))

	down := o.do("migrate", "down")
	require.Equal(t, false, down["up_to_date"])
	list := migrations(t, down)
	require.Nil(t, list[len(list)-1]["applied_at"])
	require.NotNil(t, list[0]["applied_at"])
	require.Equal(t, true, o.do("migrate", "up")["up_to_date"])
}

func TestMigrateTakesAges(t *testing.T) {
	t.Parallel()
	o := &operator{t, map[string]string{"DATABASE_URL": dbtest.Empty(t).URL}}
	for _, age := range []string{"", "0", "12h", "1w", "-1d", "forever"} {
		o.fails(exitUsage, "COLUMNSTORE_AFTER", "migrate", "up", "--columnstore-after="+age)
		o.fails(exitUsage, "READINGS_KEEP", "migrate", "up", "--readings-keep="+age)
	}
	up := o.do("migrate", "up", "--columnstore-after", "14d", "--readings-keep", "800d")
	layout, ok := up["readings"].(map[string]any)
	require.True(t, ok)
	if dbtest.Edition(t) != "community" {
		require.Nil(t, layout["keep_seconds"], "the Apache edition keeps everything")
		return
	}
	require.InDelta(t, 800*24*3600, layout["keep_seconds"], 0)
	columnstore, ok := layout["columnstore"].(map[string]any)
	require.True(t, ok)
	require.InDelta(t, 14*24*3600, columnstore["after_seconds"], 0)
}

func TestMigrateSaysWhatItNeeds(t *testing.T) {
	t.Parallel()
	url := dbtest.Empty(t).With("default_transaction_read_only", "on")
	o := &operator{t, map[string]string{"DATABASE_URL": url}}
	o.fails(exitFailure, "Its server must preload TimescaleDB 2.19 or later", "migrate", "up")
}

func migrations(t *testing.T, state map[string]any) (list []map[string]any) {
	t.Helper()
	items, ok := state["data"].([]any)
	require.True(t, ok)
	for _, item := range items {
		migration, ok := item.(map[string]any)
		require.True(t, ok)
		list = append(list, migration)
	}
	return list
}
