// Package conformance connects the rules of docs/contract.md with the tests that prove them.
//
// A test calls Covers with the ids of the rules that it proves. `go tool task test` fails if a rule in force has no
// such test; `go tool task conformance` writes the table docs/conformance.md.
package conformance

import (
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"roomsensor/docs"
)

//go:embed unobservable.tsv
var unobservable string

//go:embed blind.tsv
var blind string

// Keys of the test attributes that Covers and NeedsMachine set and `go test -json` reports.
const (
	// AttrKey has the id of a rule that the test proves.
	AttrKey = "contract"
	// MachineKey marks a test that needs something that not every machine has.
	MachineKey = "machine"
)

// Rule is one rule of the contract that is in force.
type Rule struct {
	// ID is how code and tests cite the rule: "spec 4, readings, rule 3", "decision 37 c", "decision 8 b 2".
	ID string
	// Anchor is the id of the rule in docs/contract.md: "spec-4-readings-3", "decision-37-c".
	Anchor string
	// Section is the heading above the rule: "Decision 37: Buckets and merging".
	Section string
	// Unobservable is why no client can observe the rule, and where it is shown instead; empty for nearly all rules.
	Unobservable string
}

// Rules returns all rules in force, in the order of the contract. A rule that has sub-rules is not among them; its
// sub-rules are. Neither are the rules of the next version.
func Rules() []Rule { return contract().rules }

// Anchors returns the ids of all sections and rules of docs/contract.md, also of those that are not in force.
func Anchors() map[string]bool { return contract().anchors }

// Unnoticed returns what the tests of a section would not notice, and where it shows instead, or an empty text.
func Unnoticed(section string) string { return contract().unnoticed[section] }

// Covers records that the test proves the rules with these ids. The test fails if there is no such rule, or if the rule
// is listed as unobservable.
func Covers(t testing.TB, ids ...string) {
	t.Helper()
	for _, id := range ids {
		rule, ok := contract().byID[id]
		switch {
		case !ok:
			t.Fatalf("docs/contract.md has no rule %q", id)
		case rule.Unobservable != "":
			t.Fatalf("test/conformance/unobservable.tsv lists %q", id)
		}
		t.Attr(AttrKey, id)
	}
}

// NeedsMachine marks a test that is skipped on machines that lack something. Such a test covers no rule, so that the
// same tests prove the contract on every machine.
func NeedsMachine(t testing.TB, what string) {
	t.Helper()
	t.Attr(MachineKey, what)
}

type parsed struct {
	rules   []Rule
	byID    map[string]Rule
	anchors map[string]bool

	unnoticed map[string]string // by section
}

var contract = sync.OnceValue(func() parsed {
	p, err := parse(string(docs.Contract()), unobservable)
	if err == nil {
		p.unnoticed, err = reasonsIn(blind)
	}
	if err != nil {
		panic(err)
	}
	for section := range p.unnoticed {
		if !slices.ContainsFunc(p.rules, func(r Rule) bool { return r.Section == section }) {
			panic("blind.tsv has a section that docs/contract.md does not have: " + section)
		}
	}
	return p
})

const (
	// nextVersion is the anchor of the first section that is not in force.
	nextVersion = "next-version"
	headingMark = "#"
)

var (
	anchorTag = regexp.MustCompile(`<a id="([^"]+)"></a>`)
	markup    = regexp.MustCompile("<[^>]*>|`")
)

// parse reads the anchors of the contract, and the reasons why rules are unobservable.
func parse(contract, unobservable string) (parsed, error) {
	reasons, err := reasonsIn(unobservable)
	if err != nil {
		return parsed{}, err
	}
	p := parsed{byID: map[string]Rule{}, anchors: map[string]bool{}}
	var candidates []Rule
	section, inForce := "", true
	for line := range strings.Lines(contract) {
		if strings.HasPrefix(line, headingMark) {
			section = strings.TrimSpace(markup.ReplaceAllString(strings.TrimLeft(line, headingMark), ""))
		}
		for _, match := range anchorTag.FindAllStringSubmatch(line, -1) {
			anchor := match[1]
			if p.anchors[anchor] {
				return parsed{}, fmt.Errorf("the anchor %q occurs twice", anchor)
			}
			p.anchors[anchor] = true
			inForce = inForce && anchor != nextVersion
			if inForce {
				candidates = append(candidates, Rule{ID: idOf(anchor), Anchor: anchor, Section: section})
			}
		}
	}
	for _, rule := range candidates {
		if hasSubRules(rule, candidates) {
			continue
		}
		rule.Unobservable = reasons[rule.ID]
		delete(reasons, rule.ID)
		p.rules = append(p.rules, rule)
		p.byID[rule.ID] = rule
	}
	for id := range reasons {
		return parsed{}, fmt.Errorf("unobservable.tsv lists %q, which is not a rule", id)
	}
	return p, nil
}

func hasSubRules(rule Rule, all []Rule) bool {
	for _, other := range all {
		if strings.HasPrefix(other.Anchor, rule.Anchor+"-") {
			return true
		}
	}
	return false
}

// addition matches the number of a section of additions, the first part of its anchors.
var addition = regexp.MustCompile(`^a\d+$`)

// idOf returns the id of an anchor: "decision 37 c" of decision-37-c, "spec 4, readings, rule 3" of spec-4-readings-3,
// "A8.1" of a8-1.
func idOf(anchor string) string {
	parts := strings.Split(anchor, "-")
	if addition.MatchString(parts[0]) {
		return strings.ToUpper(strings.Join(parts, "."))
	}
	if parts[0] != "spec" {
		return strings.Join(parts, " ")
	}
	id := []string{"spec " + parts[1]}
	for _, part := range parts[2:] {
		if part[0] >= '0' && part[0] <= '9' {
			part = "rule " + part
		}
		id = append(id, part)
	}
	return strings.Join(id, ", ")
}

func reasonsIn(tsv string) (map[string]string, error) {
	reasons := map[string]string{}
	for line := range strings.Lines(tsv) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		id, reason, ok := strings.Cut(line, "\t")
		if !ok {
			return nil, fmt.Errorf("a line is an id or a section, a tab and a text: %q", line)
		}
		reasons[id] = reason
	}
	return reasons, nil
}
