// Package conformance knows the sentences of the contract that a client can observe, and lets tests say which of them
// they prove.
//
// The sentences stand in spec.tsv (the specification, by its parts) and decisions.tsv (the decisions, by number).
// `go tool task test` fails where one of them has no test; docs/conformance.md shows which tests prove it.
package conformance

import (
	_ "embed"
	"fmt"
	"strings"
	"sync"
	"testing"
)

//go:embed spec.tsv
var spec string

//go:embed decisions.tsv
var decisions string

// Keys of test attributes, which `go test -json` reports.
const (
	// AttrKey names a sentence that the test proves.
	AttrKey = "contract"
	// MachineKey marks a test that needs what not every machine has.
	MachineKey = "machine"
)

// Sentence is one observable statement of the contract.
type Sentence struct {
	// ID is how tests name it: "spec 4, readings, rule 3", "decision 12.1".
	ID string
	// Text is what it says, in short.
	Text string
	// Unobservable is why no test over HTTP can show it, and where it is shown instead; empty for nearly all.
	Unobservable string
	// Part is the heading that it stands under.
	Part string
}

// Sentences returns all of them, in the order of the contract.
func Sentences() []Sentence {
	var all []Sentence
	part := ""
	for line := range strings.Lines(spec + "\n" + decisions) {
		line = strings.TrimSpace(line)
		if heading, ok := strings.CutPrefix(line, "## "); ok {
			part = heading
		}
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Split(line, "\t")
		if len(fields) < 2 || len(fields) > 3 {
			panic(fmt.Sprintf("a sentence has an id, a text and at most one remark, between tabs: %q", line))
		}
		s := Sentence{ID: fields[0], Text: fields[1], Part: part}
		if len(fields) == 3 {
			s.Unobservable = fields[2]
		}
		all = append(all, s)
	}
	return all
}

// Covers says that the test proves the sentences with these ids. The test fails if there is no such sentence, and where
// a remark says that it cannot be observed.
func Covers(t testing.TB, ids ...string) {
	t.Helper()
	for _, id := range ids {
		s, ok := byID()[id]
		switch {
		case !ok:
			t.Fatalf("the contract has no sentence %q: see internal/conformance/*.tsv", id)
		case s.Unobservable != "":
			t.Fatalf("internal/conformance/*.tsv says that %q cannot be observed", id)
		}
		t.Attr(AttrKey, id)
	}
}

// NeedsMachine marks a test that is skipped where the machine lacks something. It covers no sentence, so that the same
// tests prove the contract wherever they run.
func NeedsMachine(t testing.TB, what string) {
	t.Helper()
	t.Attr(MachineKey, what)
}

var byID = sync.OnceValue(func() map[string]Sentence {
	sentences := map[string]Sentence{}
	for _, s := range Sentences() {
		sentences[s.ID] = s
	}
	return sentences
})
