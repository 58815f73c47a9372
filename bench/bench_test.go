package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/bench/report"
	"roomsensor/internal/dbtest"
)

// Every workload runs once, at a size that tells nothing, so that none rots: with real processes, and every check of
// rows and bodies on.
func TestEveryWorkloadRuns(t *testing.T) {
	t.Parallel()
	results := filepath.Join(t.TempDir(), "small.json")
	var table, log strings.Builder
	err := run(t.Context(), []string{
		"quick", "-devices", "20", "-deep", "10", "-days", "5", "-rounds", "1", "-time", "100ms", "-load-time", "200ms",
		"-export-rows", "2000", "-upsert-rows", "5000", "-backlog", "1", "-results", results, "-database-url", dbtest.New(t).URL,
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
	for _, row := range kept.Rows {
		require.NotEmpty(t, row.Ours, row.Workload)
	}
}

func TestOptionsThatMakeNoSenseAreRefused(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"-deep", "2000"}, {"-days", "3"}, {"-layout", "random"}, {"-rounds", "0"}, {"-x"}} {
		require.Error(t, run(t.Context(), args, &strings.Builder{}, &strings.Builder{}), args)
	}
}
