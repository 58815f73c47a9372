package monitoring_test

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// panel is a part of a dashboard of Grafana. It has only what the tests need.
type panel struct {
	Title       string `json:"title"`
	Description string `json:"description"`
	GridPos     struct {
		H int `json:"h"`
		W int `json:"w"`
		X int `json:"x"`
		Y int `json:"y"`
	} `json:"gridPos"` //nolint:tagliatelle // Grafana names it.
	FieldConfig struct {
		Defaults struct {
			Unit string `json:"unit"`
		} `json:"defaults"`
	} `json:"fieldConfig"` //nolint:tagliatelle // Grafana names it.
	Targets []struct {
		Expr string `json:"expr"`
	} `json:"targets"`
}

// panels returns the panels of each dashboard, by the file.
func panels(t *testing.T) map[string][]panel {
	t.Helper()
	files, err := filepath.Glob("../../deploy/grafana/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	all := map[string][]panel{}
	for _, name := range files {
		var board struct {
			Panels []panel `json:"panels"`
		}
		require.NoError(t, json.Unmarshal(readFile(t, name), &board))
		all[filepath.Base(name)] = board.Panels
	}
	return all
}

// Each panel has a title of its own, words, a unit and queries, and a place that no other panel takes.
func TestPanels(t *testing.T) {
	t.Parallel()
	const gridWidth = 24
	for name, list := range panels(t) {
		require.NotEmpty(t, list, name)
		taken, titles := map[[2]int]bool{}, map[string]bool{}
		for _, p := range list {
			require.Regexp(t, `^[A-Z].*\.$`, p.Description, p.Title)
			require.NotEmpty(t, p.FieldConfig.Defaults.Unit, p.Title)
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
