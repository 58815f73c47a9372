package abuse

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net"
	"net/url"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"roomsensor/test/harness"
)

// floor is the least p99 without an attack that ratios are computed with. On a shared machine with two cores, a p99 of
// some milliseconds multiplies whenever another program runs, and no client notices.
const floor = 50 * time.Millisecond

// Report is the result of a trial.
type Report struct {
	harness.Conditions

	Options Options  `json:"options"`
	Attacks []Result `json:"attacks"`
	// Findings are broken promises. Each counts as a failed request.
	Findings []string `json:"findings"`

	idle idle
}

// Result is what an attack did to the tenant.
type Result struct {
	Attack   string         `json:"attack"`
	Rounds   int            `json:"rounds"`
	Requests int            `json:"requests"`
	Failed   int            `json:"failed"`
	Failures map[string]int `json:"failures,omitempty"`
	Refused  int            `json:"refused"` // 503 answers while the database did not answer
	P99      map[kind]Pair  `json:"p99"`
	Ratio    float64        `json:"ratio"`           // of the slowest kind; 0 if it is not judged
	Visible  float64        `json:"visible_seconds"` // from 202, the slowest upload
	Peaks    []Peak         `json:"peaks"`
	Attacker Tally          `json:"attacker"`
	Findings []string       `json:"findings,omitempty"`
}

// Pair is the p99 without and under an attack, in milliseconds.
type Pair struct {
	Idle   float64 `json:"idle_ms"`
	Attack float64 `json:"attack_ms"`
}

// Peak is the peak memory of a process.
type Peak struct {
	Process string  `json:"process"`
	MiB     float64 `json:"mib"`
	Over    bool    `json:"over"` // its limit, or it ended
}

func newReport(o Options, database string) *Report {
	return &Report{
		Conditions: harness.Now(database), Options: o, idle: idle{},
	}
}

// idle is the p99 of each slice without an attack.
type idle map[kind][]time.Duration

func (i idle) add(s *slice) {
	for k, took := range s.took {
		i[k] = append(i[k], p99(took))
	}
}

// with returns the p99 without an attack for the attack that followed a slice: that of the slice, or the median of all
// slices if that is greater. The slice knows what else the machine does at that time, and the median smooths it.
func (i idle) with(s *slice) map[kind]time.Duration {
	m := map[kind]time.Duration{}
	for k, all := range i {
		sorted := slices.Sorted(slices.Values(all))
		m[k] = max(sorted[len(sorted)/2], p99(s.took[k]))
	}
	return m
}

// p99 returns the 99th percentile, or 0 if there are no durations.
func p99(took []time.Duration) time.Duration {
	if len(took) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(took))
	return sorted[int(math.Ceil(0.99*float64(len(sorted))))-1]
}

func newResult(a *attack, idle map[kind]time.Duration, struck *slice, t Tally) Result {
	r := Result{
		Attack: a.name, Requests: struck.requests, Failures: struck.failures, Refused: struck.refused,
		P99: map[kind]Pair{}, Visible: struck.visible.Round(time.Millisecond).Seconds(), Attacker: t,
	}
	for _, n := range struck.failures {
		r.Failed += n
	}
	for k, before := range idle {
		under := p99(struck.took[k])
		r.P99[k] = Pair{milliseconds(before), milliseconds(under)}
		if !a.patient && k != signIns {
			r.Ratio = max(r.Ratio, round(under.Seconds()/max(before, floor).Seconds()))
		}
	}
	return r
}

// add adds a round. All its failures count, but only the p99 of the best round: the service is slow in every round, the
// machine is not.
func (r *Result) add(round Result) {
	before := *r
	if before.Rounds == 0 || round.Ratio < before.Ratio {
		*r = round
	}
	r.Rounds = before.Rounds + 1
	if before.Rounds == 0 {
		return
	}
	r.Requests, r.Failed = before.Requests+round.Requests, before.Failed+round.Failed
	r.Failures = maps.Clone(before.Failures)
	for what, n := range round.Failures {
		r.Failures[what] += n
	}
	r.Findings = slices.Concat(before.Findings, round.Findings)
	r.Visible = max(before.Visible, round.Visible)
	r.Peaks = slices.Clone(before.Peaks)
	for i := range r.Peaks {
		r.Peaks[i].MiB = max(r.Peaks[i].MiB, round.Peaks[i].MiB)
		r.Peaks[i].Over = r.Peaks[i].Over || round.Peaks[i].Over
	}
}

// verdict returns the numbers of the last line. A finding counts as a failed request.
func (r *Report) verdict() (failed int, ratio float64, over int) {
	failed = len(r.Findings)
	for i := range r.Attacks {
		failed += r.Attacks[i].Failed
		ratio = max(ratio, r.Attacks[i].Ratio)
		for _, p := range r.Attacks[i].Peaks {
			if p.Over {
				over++
			}
		}
	}
	return failed, ratio, over
}

// Failure returns nil if no attack hurt the tenant and every process stayed within its limit.
func (r *Report) Failure() error {
	failed, ratio, over := r.verdict()
	if failed == 0 && ratio <= r.Options.MaxRatio && over == 0 {
		return nil
	}
	return fmt.Errorf("%w:\n%s", harness.ErrFailed, strings.Join(r.reasons(), "\n"))
}

// reasons lists what failed.
func (r *Report) reasons() []string {
	list := slices.Clone(r.Findings)
	for i := range r.Attacks {
		a := &r.Attacks[i]
		for _, what := range slices.Sorted(maps.Keys(a.Failures)) {
			list = append(list, fmt.Sprintf("%s: %d x %s", a.Attack, a.Failures[what], what))
		}
		if a.Ratio > r.Options.MaxRatio {
			list = append(list, fmt.Sprintf("%s: p99 %.1fx", a.Attack, a.Ratio))
		}
		for _, p := range a.Peaks {
			if p.Over {
				list = append(list, fmt.Sprintf("%s: the %s took %.0f MiB", a.Attack, p.Process, p.MiB))
			}
		}
	}
	return list
}

// String is the line of progress of an attack.
func (r *Result) String() string {
	return fmt.Sprintf("%s: %d of %d requests failed, p99 %.1fx after %d rounds, memory %v, attacker %v",
		r.Attack, r.Failed, r.Requests, r.Ratio, r.Rounds, r.Peaks, r.Attacker)
}

// String is the peak of a process in one word.
func (p Peak) String() string { return fmt.Sprintf("%s=%.0fMiB", p.Process, p.MiB) }

// Print writes the report as a table, with the verdict in the last line.
func (r *Report) Print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	line := func(format string, args ...any) { _, _ = fmt.Fprintf(w, format+"\n", args...) } // Flush returns the error.
	line("%s", r.String())
	line("limit of each process: %d MiB\n", r.Options.Memory)
	line("\t\t\t\tp99 ms of reads\tp99 ms of uploads\tp99 ms of pages\tvisible\tMiB: api\treceiver\tworker\tdashboard\t")
	line("attack\tfailed\trefused\tratio\tidle, attack\tidle, attack\tidle, attack\tmax s\t\t\t\t\t")
	for i := range r.Attacks {
		a := &r.Attacks[i]
		cells := []string{
			a.Attack, fmt.Sprint(a.Failed + len(a.Findings)), fmt.Sprint(a.Refused), fmt.Sprintf("%.1f", a.Ratio),
		}
		for _, k := range []kind{reads, uploads, pages} {
			cells = append(cells, fmt.Sprintf("%.0f, %.0f", a.P99[k].Idle, a.P99[k].Attack))
		}
		cells = append(cells, fmt.Sprintf("%.1f", a.Visible))
		for _, p := range a.Peaks {
			cells = append(cells, fmt.Sprintf("%.0f", p.MiB))
		}
		line("%s\t", strings.Join(cells, "\t"))
	}
	err := w.Flush()
	failed, ratio, over := r.verdict()
	_, last := fmt.Fprintf(out, "%d failed requests, p99 %.1fx, %d processes over their limit\n", failed, ratio, over)
	if err := errors.Join(err, last); err != nil {
		return fmt.Errorf("printing the report: %w", err)
	}
	return nil
}

// reason is the innermost error of a request, without addresses.
func reason(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		return fmt.Errorf("no answer within %s", answerTimeout)
	}
	for errors.Unwrap(err) != nil {
		err = errors.Unwrap(err)
	}
	return err
}

// round rounds to one decimal, as ratios are printed.
func round(x float64) float64 { return math.Round(x*10) / 10 }

func milliseconds(d time.Duration) float64 { return math.Round(d.Seconds()*1e4) / 10 }
