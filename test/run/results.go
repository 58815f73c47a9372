package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"roomsensor/test/conformance"
)

// event is a line of `go test -json`.
type event struct {
	Action  string  `json:"Action"`  //nolint:tagliatelle // The names are those of `go test`.
	Package string  `json:"Package"` //nolint:tagliatelle // As above.
	Test    string  `json:"Test"`    //nolint:tagliatelle // As above.
	Elapsed float64 `json:"Elapsed"` //nolint:tagliatelle // As above; in seconds, with the end of a test.
	Key     string  `json:"Key"`     //nolint:tagliatelle // As above; only with the action attr.
	Value   string  `json:"Value"`   //nolint:tagliatelle // As above; only with the action attr.
}

// topTest names the top-level test of the event, as the page shows it.
func (e *event) topTest() string {
	test, _, _ := strings.Cut(e.Test, "/")
	return fmt.Sprintf("`%s` %s", strings.TrimPrefix(e.Package, module), test)
}

// results are what a run of tests says about the contract.
type results struct {
	// claims are the top-level tests that claim to prove each sentence of the contract, by id of the sentence.
	claims map[string]map[string]bool
	// dependent are the top-level tests of which a part was skipped, or would be on another machine.
	dependent map[string]bool
	// seconds are the durations of the top-level tests, without the time in which it waited for its turn.
	seconds map[string]float64
}

func newResults() *results {
	return &results{claims: map[string]map[string]bool{}, dependent: map[string]bool{}, seconds: map[string]float64{}}
}

// read adds the events in a file.
func (r *results) read(path string) error {
	f, err := os.Open(path) //nolint:gosec // A file of this program.
	if err != nil {
		return fmt.Errorf("reading the results: %w", err)
	}
	if err := errors.Join(r.parse(f), f.Close()); err != nil {
		return fmt.Errorf("reading the results: %w", err)
	}
	return nil
}

func (r *results) parse(events io.Reader) error {
	for decoder := json.NewDecoder(events); ; {
		var e event
		if err := decoder.Decode(&e); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err //nolint:wrapcheck // read wraps it.
		}
		if e.Test != "" {
			r.add(&e)
		}
	}
}

func (r *results) add(e *event) {
	switch {
	case e.Action == "skip", e.Action == "attr" && e.Key == conformance.MachineKey:
		r.dependent[e.topTest()] = true
	case e.Action == "attr" && e.Key == conformance.AttrKey:
		if r.claims[e.Value] == nil {
			r.claims[e.Value] = map[string]bool{}
		}
		r.claims[e.Value][e.topTest()] = true
	case (e.Action == "pass" || e.Action == "fail") && !strings.Contains(e.Test, "/"):
		r.seconds[e.topTest()] = e.Elapsed
	}
}

// shownSlowest is the number of slow tests that a run prints.
const shownSlowest = 10

// slowest returns a table of the slowest top-level tests.
func (r *results) slowest() string {
	tests := slices.SortedFunc(maps.Keys(r.seconds), func(a, b string) int {
		return cmp.Or(cmp.Compare(r.seconds[b], r.seconds[a]), cmp.Compare(a, b))
	})
	var table strings.Builder
	table.WriteString("slowest tests, in seconds:\n")
	for _, test := range tests[:min(len(tests), shownSlowest)] {
		fmt.Fprintf(&table, "%8.2f  %s\n", r.seconds[test], strings.ReplaceAll(test, "`", ""))
	}
	return table.String()
}

// proofs returns the top-level tests that prove a sentence of the contract, sorted. A test that is skipped on some
// machine, even in part, proves nothing: so the answer is the same on every machine on which all tests pass.
func (r *results) proofs(id string) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(r.claims[id])), func(test string) bool { return r.dependent[test] })
}
