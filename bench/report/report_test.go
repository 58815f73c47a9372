package report_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/bench/report"
)

func TestARowIsJudgedByTheMedianOfItsRatios(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		row    report.Row
		ratios report.Sample
		want   string
	}{
		"more a second is better": {
			report.Row{Kind: report.Rate, Ours: report.Sample{90, 10, 80}, Bar: report.Sample{100, 100, 100}, Reach: 0.8, Aim: 1},
			report.Sample{0.9, 0.1, 0.8},
			report.Reached,
		},
		"less time is better": {
			report.Row{Kind: report.Time, Ours: report.Sample{1, 2}, Bar: report.Sample{4, 4}, Reach: 2, Aim: 3},
			report.Sample{4, 2},
			report.Aimed,
		},
		"less growth is better": {
			report.Row{Kind: report.Growth, Ours: report.Sample{4}, Bar: report.Sample{1}, Reach: 3, Aim: 1.5},
			report.Sample{4},
			report.Short,
		},
		"a bound is of ours alone": {
			report.Row{Kind: report.Bound, Ours: report.Sample{63, 65, 64}, Reach: 64, Aim: 20},
			report.Sample{63, 65, 64},
			report.Reached,
		},
		"no bar, no verdict": {
			report.Row{Kind: report.Rate, Ours: report.Sample{90}, Reach: 0.8, Aim: 1}, nil, report.None,
		},
		"no reach, no verdict": {
			report.Row{Kind: report.Rate, Ours: report.Sample{90}, Bar: report.Sample{30}}, report.Sample{3}, report.None,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.row.Judge()
			require.InDeltaSlice(t, []float64(c.ratios), []float64(c.row.Ratios), 1e-9)
			require.Equal(t, c.want, c.row.Verdict)
		})
	}
}

func TestTheTableTellsWhatTheLayoutIsWorth(t *testing.T) {
	t.Parallel()
	r := report.Report{Rows: []report.Row{
		{ID: "W3a", Workload: "CSV", Layout: "arrived", Kind: report.Time, Ours: report.Sample{4}, Bar: report.Sample{8}},
		{ID: "W3a", Workload: "CSV", Layout: "ordered", Kind: report.Time, Ours: report.Sample{1}, Bar: report.Sample{4}},
	}}
	var table strings.Builder
	require.NoError(t, r.Print(&table))
	require.Contains(t, table.String(), "ordered instead of arrived makes ours 4x as fast, the bar 2x: W3a CSV\n")
}
