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
	"roomsensor/internal/dev/postgres"
	"roomsensor/test/dbtest"
)

// layouts returns the layouts that the tests' server supports.
func layouts(t *testing.T) []string {
	t.Helper()
	return slices.DeleteFunc(workload.Layouts(), func(layout string) bool {
		return layout == workload.Columnstore && dbtest.Edition(t) != postgres.Community
	})
}

// TestRun runs every workload once on every layout with a tiny size, with real processes and all checks of rows and
// bodies.
func TestRun(t *testing.T) {
	t.Parallel()
	layouts := layouts(t)
	results := filepath.Join(t.TempDir(), "small.json")
	var table, log strings.Builder
	err := workload.Run(t.Context(), []string{
		"quick", "-devices", "20", "-deep", "10", "-days", "8", "-rounds", "1", "-time", "100ms", "-load-time", "200ms",
		"-pages", "8", "-export-rows", "2000", "-upsert-rows", "5000", "-backlog", "1",
		"-teams", "10", "-team-devices", "10", "-team-pause", "100ms", "-cpu-uploads", "240", "-memory-teams", "5", "-layout", strings.Join(layouts, ","), "-results", results,
		"-database-url", dbtest.New(t).URL,
	}, &table, &log, nil)
	require.NoError(t, err, log.String())

	for _, id := range []string{"W1", "W2", "W3a", "W3b", "W4", "W5", "W6", "W7", "W8", "W9", "W11", "W12", "W13", "W14", "W15", "W16", "W17", "R1", "R2"} {
		require.Contains(t, table.String(), "\n"+id+" ", "the row of every workload")
	}
	text, err := os.ReadFile(results)
	require.NoError(t, err)
	var kept report.Report
	require.NoError(t, json.Unmarshal(text, &kept))
	require.Len(t, kept.Rows, strings.Count(table.String(), "\nW")+strings.Count(table.String(), "\nR"))
	require.Equal(t, dbtest.Edition(t), kept.Edition)
	var paged []string
	for _, row := range kept.Rows {
		if row.ID == "W14" {
			require.Contains(t, row.Note, "skipped: -database-url names a server that must not be restarted")
			continue
		}
		require.NotEmpty(t, row.Ours, row.Workload)
		if row.ID == "W2" {
			paged = append(paged, row.Layout)
		}
	}
	require.Equal(t, layouts, paged)
}

// TestRunChanges runs P8, which only bench:peers selects.
func TestRunChanges(t *testing.T) {
	t.Parallel()
	results := filepath.Join(t.TempDir(), "small.json")
	var table, log strings.Builder
	err := workload.Run(t.Context(), []string{
		"quick", "-only", "P8", "-devices", "4", "-deep", "3", "-days", "9", "-rounds", "1", "-time", "50ms",
		"-change-rate", "20", "-change-time", "1s", "-layout", "arrived", "-results", results,
		"-database-url", dbtest.New(t).URL,
	}, &table, &log, &workload.Peers{})
	require.NoError(t, err, log.String())
	text, err := os.ReadFile(results)
	require.NoError(t, err)
	var kept report.Report
	require.NoError(t, json.Unmarshal(text, &kept))
	require.Len(t, kept.Rows, 2, "p50 and p99 of P8")
	for _, row := range kept.Rows {
		require.Equal(t, "P8", row.ID)
		require.Positive(t, row.Ours.Median())
	}
}

// TestRunColumnstoreOnApache checks that the error comes before readings are loaded, which takes minutes.
func TestRunColumnstoreOnApache(t *testing.T) {
	t.Parallel()
	if dbtest.Edition(t) != postgres.Apache {
		t.Skip("needs the Apache edition of TimescaleDB, and the server has the Community edition")
	}
	var log strings.Builder
	args := []string{"quick", "-layout", "arrived,columnstore", "-database-url", dbtest.New(t).URL}
	require.ErrorContains(t, workload.Run(t.Context(), args, &strings.Builder{}, &log, nil), "needs TimescaleDB's Community edition")
	require.NotContains(t, log.String(), "loaded")
}
