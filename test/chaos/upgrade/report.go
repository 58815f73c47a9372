package upgrade

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"roomsensor/test/harness"
)

// Stage is what became of the requests while one change was made and afterwards, until the next one.
type Stage struct {
	Name string `json:"name"`
	// Took is the duration of the change: of `migrate up`, or from the start of the first process to the end of the last.
	Took     time.Duration  `json:"took_ns"`
	Requests map[string]int `json:"requests"`   // by kind of process and version, such as "api old"
	Slowest  time.Duration  `json:"slowest_ns"` // without those of the change feed, which waits for changes
	Failed   []string       `json:"failed"`
}

// stages collects the requests of each stage. It is safe for concurrent use.
type stages struct {
	mu   sync.Mutex
	list []*Stage
}

func (s *stages) begin(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, &Stage{Name: name, Requests: map[string]int{}})
}

// changed records how long the change of the stage took.
func (s *stages) changed(took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list[len(s.list)-1].Took = took
}

// changeFeed is the path of requests that the service holds until something changes.
const changeFeed = "/v1/readings/changes"

// note records a request.
func (s *stages) note(kind string, r served) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.list) == 0 {
		return
	}
	now := s.list[len(s.list)-1]
	now.Requests[kind+" "+r.version]++
	if r.path != changeFeed {
		now.Slowest = max(now.Slowest, r.took)
	}
	if r.failure != "" {
		now.Failed = append(now.Failed, fmt.Sprintf("%s %s: %s", kind, r.version, r.failure))
	}
}

// Report is the result of a trial.
type Report struct {
	harness.Report
	Options Options        `json:"options"`
	Base    string         `json:"base"` // the old version
	Stages  []*Stage       `json:"stages"`
	Calls   map[string]int `json:"calls"` // of the API that succeeded, by operation
}

func newReport(e *env, common harness.Report, calls map[string]int) *Report {
	r := &Report{Report: common, Options: e.options, Base: e.base.name, Stages: e.stages.list, Calls: calls}
	for _, s := range r.Stages {
		for _, failure := range s.Failed {
			r.Findings = append(r.Findings, fmt.Sprintf("failed request, %s: %s", s.Name, failure))
		}
	}
	if n := common.Uploads.Unknown; n > 0 {
		r.Findings = append(r.Findings, fmt.Sprintf("%d uploads have no conclusive answer", n))
	}
	for _, o := range operations() {
		if calls[o.name] == 0 {
			r.Findings = append(r.Findings, "no call "+o.name+" succeeded")
		}
	}
	return r
}

// failed returns the number of failed requests.
func (r *Report) failed() (n int) {
	for _, s := range r.Stages {
		n += len(s.Failed)
	}
	return n
}

// Print writes the report as a table, with the verdict in the last line.
func (r *Report) Print(out io.Writer) error {
	lines := []harness.Line{
		harness.Linef("seed", "%d", r.Options.Seed),
		harness.Linef("database", "%s", r.Hardware.Database),
		harness.Linef("old version", "%s", r.Base),
		harness.Linef("calls", "%s", counts(r.Calls)),
	}
	for _, s := range r.Stages {
		lines = append(lines, harness.Linef("stage: "+s.Name, "change %s; requests: %s; slowest %s; %d failed",
			harness.Seconds(s.Took), counts(s.Requests), harness.Seconds(s.Slowest), len(s.Failed)))
	}
	return r.Report.Print(out, lines, fmt.Sprintf("%d failed requests, ", r.failed()))
}

// counts prints numbers by name.
func counts(numbers map[string]int) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(numbers)) {
		parts = append(parts, fmt.Sprintf("%s %d", name, numbers[name]))
	}
	return strings.Join(parts, ", ")
}
