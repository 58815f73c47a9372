package main

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// The committed dashboards are those of the generator.
func TestDashboards(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.Zero(t, run([]string{dir}, io.Discard))
	require.Equal(t, 2, run(nil, io.Discard))
	require.Equal(t, 1, run([]string{filepath.Join(dir, "none")}, io.Discard))
	committed, err := filepath.Glob("../*.json")
	require.NoError(t, err)
	require.Len(t, committed, len(dashboards()))
	for _, name := range committed {
		want, err := os.ReadFile(filepath.Join(dir, filepath.Base(name)))
		require.NoError(t, err)
		got, err := os.ReadFile(name)
		require.NoError(t, err)
		require.Equal(t, string(want), string(got), "run go generate ./deploy/grafana/gen")
	}
}

// Each panel has a title of its own, words, a unit and queries, and a place that no other panel takes.
func TestPanels(t *testing.T) {
	t.Parallel()
	for name, d := range dashboards() {
		taken, titles := map[[2]int]bool{}, map[string]bool{}
		for _, p := range d.Panels {
			require.Regexp(t, `^[A-Z].*\.$`, p.Description, p.Title)
			require.Contains(t, []string{unitSeconds, unitBytes, unitPercent, unitNumber, unitPerSec}, p.FieldConfig.Defaults.Unit)
			require.NotEmpty(t, p.Targets, p.Title)
			require.False(t, titles[p.Title], "%s: %s", name, p.Title)
			titles[p.Title] = true
			for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
				require.Less(t, x, gridWidth)
				for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
					require.False(t, taken[[2]int{x, y}], "%s: %s", name, p.Title)
					taken[[2]int{x, y}] = true
				}
			}
		}
	}
}
