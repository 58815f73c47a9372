package alerts

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"roomsensor/test/harness"
)

// Report is the result of a trial.
type Report struct {
	harness.Conditions

	Options Options  `json:"options"`
	Alerts  []Result `json:"alerts"`
	// Findings are what did not work: a fault, or an alert that did not clear.
	Findings []string `json:"findings"`
}

// Result is what became of an alert. Times are in seconds of the trial, of which each stands for a minute in rules.
type Result struct {
	Alert string `json:"alert"`
	Fault string `json:"fault"`
	// Fire is the time from the fault until the alert fired, Clear from its removal until the alert cleared; -1 if it
	// did not.
	Fire   float64  `json:"fire_seconds"`
	Clear  float64  `json:"clear_seconds"`
	Others []string `json:"others,omitempty"` // that fired meanwhile
}

func newReport(e *env) *Report {
	return &Report{
		Conditions: harness.Now(e.described), Options: e.options,
	}
}

// results returns the results of a fault that was injected and removed.
func (e *env) results(f *fault, began, repairing, repaired time.Time) []Result {
	fired, ended := e.states.times()
	list := missed(f)
	for i := range list {
		r := &list[i]
		if at, ok := fired[r.Alert]; ok && at.Before(repairing) {
			r.Fire = round(at.Sub(began))
		}
		if at, ok := ended[r.Alert]; ok && at.After(repairing) {
			r.Clear = round(max(0, at.Sub(repaired)))
		}
		for _, name := range e.names {
			if _, ok := fired[name]; ok && !slices.Contains(f.alerts, name) {
				r.Others = append(r.Others, name)
			}
		}
	}
	return list
}

// missed returns the results of a fault whose alerts did not fire.
func missed(f *fault) (list []Result) {
	for _, name := range f.alerts {
		list = append(list, Result{Alert: name, Fault: f.does, Fire: -1, Clear: -1})
	}
	return list
}

func round(d time.Duration) float64 { return d.Round(100 * time.Millisecond).Seconds() }

// passed reports whether the alert fired and cleared.
func (r *Result) passed() bool { return r.Fire >= 0 && r.Clear >= 0 }

// String is the line of progress of an alert.
func (r *Result) String() string {
	return fmt.Sprintf("%s: fired after %.1f s, cleared after %.1f s, others: %s",
		r.Alert, r.Fire, r.Clear, strings.Join(r.Others, ", "))
}

// verdict counts the alerts, and those that fired and cleared each time.
func (r *Report) verdict() (passed, all int) {
	names := map[string]bool{}
	for i := range r.Alerts {
		a := &r.Alerts[i]
		before, seen := names[a.Alert]
		names[a.Alert] = a.passed() && (before || !seen)
	}
	for _, ok := range names {
		if ok {
			passed++
		}
	}
	return passed, len(names)
}

// Failure returns nil if every alert fired and cleared.
func (r *Report) Failure() error {
	passed, all := r.verdict()
	if passed == all && len(r.Findings) == 0 {
		return nil
	}
	return errors.Join(harness.ErrFailed, errors.New(strings.Join(r.Findings, "\n"))) //nolint:err113 // They are text.
}

// Print writes the report as a table, with the verdict in the last line.
func (r *Report) Print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	line := func(format string, args ...any) { _, _ = fmt.Fprintf(w, format+"\n", args...) } // Flush returns the error.
	line("%s", r.Conditions.String())
	line("a second stands for a minute in for and ranges of the rules, at most %s\n", maxTime)
	line("alert\tfires after s\tclears after s\tothers\tfault")
	for i := range r.Alerts {
		a := &r.Alerts[i]
		line("%s\t%.1f\t%.1f\t%s\t%s", a.Alert, a.Fire, a.Clear, strings.Join(a.Others, " "), a.Fault)
	}
	err := w.Flush()
	for _, finding := range r.Findings {
		_, failed := fmt.Fprintln(out, finding)
		err = errors.Join(err, failed)
	}
	passed, all := r.verdict()
	_, last := fmt.Fprintf(out, "%d of %d alerts fired and cleared\n", passed, all)
	if err := errors.Join(err, last); err != nil {
		return fmt.Errorf("printing the report: %w", err)
	}
	return nil
}
