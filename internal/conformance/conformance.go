// Package conformance knows the sentences of the contract that a client can observe, and lets tests say which of them
// they prove.
//
// The sentences stand in spec.tsv (the specification, by its parts) and decisions.tsv (the decisions, by their numbers).
package conformance

import (
	_ "embed"
	"fmt"
	"strings"
	"testing"
)

//go:embed spec.tsv
var spec string

//go:embed decisions.tsv
var decisions string

// AttrKey is the key of the test attribute that names a sentence; `go test -json` reports it.
const AttrKey = "contract"

// Sentence is one observable statement of the contract.
type Sentence struct {
	// ID is how tests name it: "spec 4, readings, rule 3", "decision 12.1".
	ID string
	// Text is what it says, in short.
	Text string
	// Unobservable is why no test over HTTP can show it, and where it is shown instead; empty for nearly all.
	Unobservable string
}

// Sentences returns all of them, in the order of the contract.
func Sentences() []Sentence {
	var all []Sentence
	for line := range strings.Lines(spec + decisions) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Split(line, "\t")
		if len(fields) < 2 || len(fields) > 3 {
			panic(fmt.Sprintf("a sentence has an id, a text and at most one remark, between tabs: %q", line))
		}
		s := Sentence{ID: fields[0], Text: fields[1]}
		if len(fields) == 3 {
			s.Unobservable = fields[2]
		}
		all = append(all, s)
	}
	return all
}

// Covers says that the test proves the sentences with these ids. The test fails if there is no such sentence.
func Covers(t testing.TB, ids ...string) {
	t.Helper()
	for _, id := range ids {
		if !exists(id) {
			t.Fatalf("the contract has no sentence %q: see internal/conformance/*.tsv", id)
		}
		t.Attr(AttrKey, id)
	}
}

func exists(id string) bool {
	for _, s := range Sentences() {
		if s.ID == id {
			return true
		}
	}
	return false
}
