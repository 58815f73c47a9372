package report

import (
	"slices"
)

// Sample contains one result per round.
type Sample []float64

// Median returns the median, or 0 for an empty sample.
func (s Sample) Median() float64 {
	if len(s) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// Kind defines the ratio of a row and its better direction.
type Kind int

// The kinds of ratios.
const (
	// Rate divides our rate by that of the baseline: higher is better.
	Rate Kind = iota
	// Time divides the baseline's time by ours: higher is better.
	Time
	// Growth divides our time by that of the baseline, which should be the same: lower is better.
	Growth
	// Bound is our value without a baseline: lower is better.
	Bound
)

// Row is the result of one workload.
type Row struct {
	ID       string `json:"id"`
	Workload string `json:"workload"`
	Layout   string `json:"layout,omitempty"`
	Kind     Kind   `json:"-"`
	Unit     string `json:"unit"`
	Ours     Sample `json:"ours"`
	Against  string `json:"against"` // describes the baseline
	Baseline Sample `json:"bar,omitempty"`
	Ratios   Sample `json:"ratios"` // of the rounds; the verdict is about their median
	// Minimum and Target are the ratios of the verdict, in the columns reach and aim. A row may have only one of them, and
	// has no verdict without either.
	Minimum float64 `json:"reach,omitempty"`
	Target  float64 `json:"aim,omitempty"`
	Verdict string  `json:"verdict"`
	// Database is what the database takes for one of our requests, in milliseconds, per round.
	Database Sample `json:"database_ms,omitempty"`
	// Parts are the shares of the processes in Ours.
	Parts map[string]Sample `json:"parts,omitempty"`
	Note  string            `json:"note,omitempty"`
}

// The verdicts: the median ratio meets the target, meets the minimum, meets neither, or there is no verdict.
const (
	MeetsTarget  = "aim"
	MeetsMinimum = "reach"
	BelowMinimum = "short"
	None         = "-"
)

// Evaluate computes the ratios and the verdict.
func (r *Row) Evaluate() {
	for i := range r.Ours {
		if ratio, ok := r.ratio(i); ok {
			r.Ratios = append(r.Ratios, ratio)
		}
	}
	r.Verdict = r.verdict()
}

func (r *Row) ratio(i int) (ratio float64, ok bool) {
	switch {
	case r.Kind == Bound:
		return r.Ours[i], true
	case i >= len(r.Baseline) || r.Baseline[i] == 0 || r.Ours[i] == 0:
		return 0, false
	case r.Kind == Time:
		return r.Baseline[i] / r.Ours[i], true
	}
	return r.Ours[i] / r.Baseline[i], true
}

func (r *Row) verdict() string {
	switch {
	case len(r.Ratios) == 0:
		return None
	case r.Target != 0 && r.meets(r.Target):
		return MeetsTarget
	case r.Minimum == 0:
		return None
	case r.meets(r.Minimum):
		return MeetsMinimum
	}
	return BelowMinimum
}

func (r *Row) meets(ratio float64) bool {
	if r.Kind == Growth || r.Kind == Bound {
		return r.Ratios.Median() <= ratio
	}
	return r.Ratios.Median() >= ratio
}
