package main

import (
	"cmp"
	"slices"
	"strings"

	"roomsensor/internal/conformance"
)

// testName is one test or subtest of a package.
type testName struct{ pkg, test string }

// top is the test that `go test -run` finds by its plain name.
func (n testName) top() testName {
	test, _, _ := strings.Cut(n.test, "/")
	return testName{n.pkg, test}
}

// family is the test and those that it is a subtest of. A slash may also be of the name of a subtest: then some of
// the family do not exist, which harms nothing.
func (n testName) family() []testName {
	family := []testName{n}
	for i, c := range n.test {
		if c == '/' {
			family = append(family, testName{n.pkg, n.test[:i]})
		}
	}
	return family
}

// proof gathers which sentences of the contract tests claim, and which of them may.
type proof struct {
	claims map[string][]testName
	passed map[testName]bool
	// dependent are tests that were skipped, or that are where the machine lacks something.
	dependent []testName
}

func newProof() *proof {
	return &proof{claims: map[string][]testName{}, passed: map[testName]bool{}}
}

// take reads one event.
func (p *proof) take(e event) {
	name := testName{e.Package, e.Test}
	switch {
	case e.Test == "":
	case e.Action == "attr" && e.Key == conformance.AttrKey:
		p.claims[e.Value] = append(p.claims[e.Value], name)
	case e.Action == "pass":
		p.passed[name] = true
	case e.Action == "skip", e.Action == "attr" && e.Key == conformance.MachineKey:
		p.dependent = append(p.dependent, name)
	}
}

// tests returns the top-level tests that prove each sentence: those that passed, and whose answer is the same on every
// machine. A test that is skipped somewhere covers nothing, and neither do its subtests nor those that it is a part of.
func (p *proof) tests() map[string][]testName {
	below, above := map[testName]bool{}, map[testName]bool{}
	for _, name := range p.dependent {
		below[name] = true
		for _, relative := range name.family() {
			above[relative] = true
		}
	}
	proved := map[string][]testName{}
	for id, claims := range p.claims {
		for _, name := range claims {
			if p.passed[name] && !above[name] && !slices.ContainsFunc(name.family(), func(n testName) bool { return below[n] }) {
				proved[id] = append(proved[id], name.top())
			}
		}
		slices.SortFunc(proved[id], func(a, b testName) int {
			return cmp.Or(cmp.Compare(a.pkg, b.pkg), cmp.Compare(a.test, b.test))
		})
		proved[id] = slices.Compact(proved[id])
	}
	return proved
}
