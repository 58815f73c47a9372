package main

import (
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
	Action  string `json:"Action"`  //nolint:tagliatelle // The names are those of `go test`.
	Package string `json:"Package"` //nolint:tagliatelle // As above.
	Test    string `json:"Test"`    //nolint:tagliatelle // As above.
	Key     string `json:"Key"`     //nolint:tagliatelle // As above; only with the action attr.
	Value   string `json:"Value"`   //nolint:tagliatelle // As above; only with the action attr.
}

// topTest names the top-level test of the event, as the page shows it.
func (e *event) topTest() string {
	test, _, _ := strings.Cut(e.Test, "/")
	return fmt.Sprintf("`%s` %s", strings.TrimPrefix(e.Package, "roomsensor/"), test)
}

// results are what a run of tests says about the contract.
type results struct {
	// claims are the top-level tests that claim to prove each sentence of the contract, by id of the sentence.
	claims map[string]map[string]bool
	// dependent are the top-level tests of which a part was skipped, or would be on another machine.
	dependent map[string]bool
}

func readResults(path string) (*results, error) {
	f, err := os.Open(path) //nolint:gosec // A file of this program.
	if err != nil {
		return nil, fmt.Errorf("reading the results: %w", err)
	}
	r, err := parseResults(f)
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("reading the results: %w", err)
	}
	return r, nil
}

func parseResults(events io.Reader) (*results, error) {
	r := &results{claims: map[string]map[string]bool{}, dependent: map[string]bool{}}
	for decoder := json.NewDecoder(events); ; {
		var e event
		if err := decoder.Decode(&e); errors.Is(err, io.EOF) {
			return r, nil
		} else if err != nil {
			return nil, err //nolint:wrapcheck // readResults wraps it.
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
	}
}

// proofs returns the top-level tests that prove a sentence of the contract, sorted. A test that is skipped on some
// machine, even in part, proves nothing: so the answer is the same on every machine on which all tests pass.
func (r *results) proofs(id string) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(r.claims[id])), func(test string) bool { return r.dependent[test] })
}
