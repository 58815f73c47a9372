// Package report turns the figures of rounds into rows with a verdict, prints them as a table and keeps them as JSON.
package report

import (
	"slices"
)

// Sample is one figure of every round.
type Sample []float64

// Median is the middle one, 0 of none.
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

// Kind says how a ratio comes about and which way is better.
type Kind int

// The kinds of ratios.
const (
	// Rate is ours by the bar's, of things a second: more is better.
	Rate Kind = iota
	// Time is the bar's by ours, of seconds: more is better.
	Time
	// Growth is ours by the bar's, of what should not grow: less is better.
	Growth
	// Bound is ours alone: less is better.
	Bound
)

// Row is what came out of one workload.
type Row struct {
	ID       string `json:"id"`
	Workload string `json:"workload"`
	Layout   string `json:"layout,omitempty"`
	Kind     Kind   `json:"-"`
	Unit     string `json:"unit"`
	Ours     Sample `json:"ours"`
	Against  string `json:"against"` // what the bar is
	Bar      Sample `json:"bar,omitempty"`
	Ratios   Sample `json:"ratios"` // of the rounds, which is what the verdict is of
	// Reach and Aim are the ratios of the verdict; a row without them is told alone.
	Reach   float64 `json:"reach,omitempty"`
	Aim     float64 `json:"aim,omitempty"`
	Verdict string  `json:"verdict"`
	Note    string  `json:"note,omitempty"`
}

// The verdicts.
const (
	Aimed   = "aim"
	Reached = "reach"
	Short   = "short"
	None    = "-"
)

// Judge fills in ratios and verdict.
func (r *Row) Judge() {
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
	case i >= len(r.Bar) || r.Bar[i] == 0 || r.Ours[i] == 0:
		return 0, false
	case r.Kind == Time:
		return r.Bar[i] / r.Ours[i], true
	}
	return r.Ours[i] / r.Bar[i], true
}

func (r *Row) verdict() string {
	switch {
	case r.Reach == 0 || len(r.Ratios) == 0:
		return None
	case r.attains(r.Aim):
		return Aimed
	case r.attains(r.Reach):
		return Reached
	}
	return Short
}

func (r *Row) attains(bar float64) bool {
	if r.Kind == Growth || r.Kind == Bound {
		return r.Ratios.Median() <= bar
	}
	return r.Ratios.Median() >= bar
}
