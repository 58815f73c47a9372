package report_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/bench/report"
)

func TestRowEvaluate(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		row    report.Row
		ratios report.Sample
		want   string
	}{
		"higher rate is better": {
			report.Row{Kind: report.Rate, Ours: report.Sample{90, 10, 80}, Baseline: report.Sample{100, 100, 100}, Minimum: 0.8, Target: 1},
			report.Sample{0.9, 0.1, 0.8},
			report.MeetsMinimum,
		},
		"less time is better": {
			report.Row{Kind: report.Time, Ours: report.Sample{1, 2}, Baseline: report.Sample{4, 4}, Minimum: 2, Target: 3},
			report.Sample{4, 2},
			report.MeetsTarget,
		},
		"lower growth is better": {
			report.Row{Kind: report.Growth, Ours: report.Sample{4}, Baseline: report.Sample{1}, Minimum: 3, Target: 1.5},
			report.Sample{4},
			report.BelowMinimum,
		},
		"a bound has no baseline": {
			report.Row{Kind: report.Bound, Ours: report.Sample{63, 65, 64}, Minimum: 64, Target: 20},
			report.Sample{63, 65, 64},
			report.MeetsMinimum,
		},
		"no baseline, no verdict": {
			report.Row{Kind: report.Rate, Ours: report.Sample{90}, Minimum: 0.8, Target: 1}, nil, report.None,
		},
		"a target alone is met": {
			report.Row{Kind: report.Bound, Ours: report.Sample{4}, Target: 5}, report.Sample{4}, report.MeetsTarget,
		},
		"a target alone is not met": {
			report.Row{Kind: report.Bound, Ours: report.Sample{6}, Target: 5}, report.Sample{6}, report.None,
		},
		"a minimum alone is met": {
			report.Row{Kind: report.Rate, Ours: report.Sample{2}, Baseline: report.Sample{1}, Minimum: 1}, report.Sample{2}, report.MeetsMinimum,
		},
		"neither, no verdict": {
			report.Row{Kind: report.Rate, Ours: report.Sample{90}, Baseline: report.Sample{30}}, report.Sample{3}, report.None,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.row.Evaluate()
			require.InDeltaSlice(t, []float64(c.ratios), []float64(c.row.Ratios), 1e-9)
			require.Equal(t, c.want, c.row.Verdict)
		})
	}
}

func TestReportPrint(t *testing.T) {
	t.Parallel()
	r := report.Report{Rows: []report.Row{
		{ID: "W3a", Workload: "CSV", Layout: "arrived", Kind: report.Time, Ours: report.Sample{4}, Baseline: report.Sample{8}},
		{ID: "W3a", Workload: "CSV", Layout: "ordered", Kind: report.Time, Ours: report.Sample{1}, Baseline: report.Sample{4}},
	}}
	r.Rows = append(r.Rows,
		report.Row{ID: "P8", Ours: report.Sample{1}, Database: report.Sample{12.34, 1, 20}, Note: "1000 uploads/s arrived"})
	var table strings.Builder
	require.NoError(t, r.Print(&table))
	require.Contains(t, table.String(), "database 12.3 ms; 1000 uploads/s arrived\n")
	require.Contains(t, table.String(), "ordered instead of arrived makes ours 4x as fast, the bar 2x: W3a CSV\n")
}
