package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/bench/report"
	"roomsensor/bench/workload"
	"roomsensor/internal/dbtest"
	"roomsensor/internal/localdb"
)

// layouts are those that the edition of the tests' server has.
func layouts(t *testing.T) []string {
	t.Helper()
	return slices.DeleteFunc(workload.Layouts(), func(layout string) bool {
		return layout == workload.Columnstore && dbtest.Edition(t) != localdb.Community
	})
}

// Every workload runs once on every layout, at a size that tells nothing, so that none rots: with real processes, and
// every check of rows and bodies on.
func TestEveryWorkloadRuns(t *testing.T) {
	t.Parallel()
	layouts := layouts(t)
	results := filepath.Join(t.TempDir(), "small.json")
	var table, log strings.Builder
	err := run(t.Context(), []string{
		"quick", "-devices", "20", "-deep", "10", "-days", "8", "-rounds", "1", "-time", "100ms", "-load-time", "200ms",
		"-export-rows", "2000", "-upsert-rows", "5000", "-backlog", "1", "-layout", strings.Join(layouts, ","), "-results", results,
		"-database-url", dbtest.New(t).URL,
	}, &table, &log)
	require.NoError(t, err, log.String())

	for _, id := range []string{"W1", "W2", "W3a", "W3b", "W4", "W5", "W6", "W7", "W8", "W9"} {
		require.Contains(t, table.String(), "\n"+id+" ", "the row of every workload")
	}
	text, err := os.ReadFile(results)
	require.NoError(t, err)
	var kept report.Report
	require.NoError(t, json.Unmarshal(text, &kept))
	require.Len(t, kept.Rows, strings.Count(table.String(), "\nW"))
	require.Equal(t, dbtest.Edition(t), kept.Edition)
	var paged []string
	for _, row := range kept.Rows {
		require.NotEmpty(t, row.Ours, row.Workload)
		if row.ID == "W2" {
			paged = append(paged, row.Layout)
		}
	}
	require.Equal(t, layouts, paged)
}

func TestColumnstoreNeedsCommunity(t *testing.T) {
	t.Parallel()
	with := options{Options: workload.Options{Layouts: workload.Layouts()}}
	require.NoError(t, with.suits(localdb.Info{Edition: localdb.Community}))
	err := with.suits(localdb.Info{Edition: localdb.Apache, TimescaleDB: "2.19.3", PostgreSQL: "17.11"})
	require.ErrorContains(t, err, "needs TimescaleDB's Community edition, and this server is TimescaleDB 2.19.3, apache edition")
	require.ErrorContains(t, err, "-database-url postgres://")
	without := options{Options: workload.Options{Layouts: []string{workload.AsArrived, workload.Ordered}}}
	require.NoError(t, without.suits(localdb.Info{Edition: localdb.Apache}))
}

// On Apache it is said before minutes went into loading readings.
func TestColumnstoreIsRefusedOnApacheAtOnce(t *testing.T) {
	t.Parallel()
	if dbtest.Edition(t) != localdb.Apache {
		t.Skip("needs the Apache edition of TimescaleDB, and the server has the Community edition")
	}
	var log strings.Builder
	args := []string{"quick", "-layout", "arrived,columnstore", "-database-url", dbtest.New(t).URL}
	require.ErrorContains(t, run(t.Context(), args, &strings.Builder{}, &log), "needs TimescaleDB's Community edition")
	require.NotContains(t, log.String(), "loaded")
}

func TestOptionsThatMakeNoSenseAreRefused(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"-deep", "2000"},
		{"-days", "3"},
		{"-rounds", "0"},
		{"-x"},
		{"-layout", "random"},
		{"-layout", "ordered,arrived"},
		{"-layout", "arrived,arrived"},
		{"quick", "-layout", "columnstore", "-days", "7"},
	} {
		require.Error(t, run(t.Context(), args, &strings.Builder{}, &strings.Builder{}), args)
	}
}
