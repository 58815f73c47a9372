package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"roomsensor/internal/conformance"
)

const (
	// tablePath is where the table is committed.
	tablePath = "docs/conformance.md"
	// shownTests is how many of the tests of a sentence the table names.
	shownTests = 3

	introduction = "# Conformance\n\n" +
		"Every sentence of the contract that a client can observe, and the tests that prove it: over HTTP against the\n" +
		"running service, and for what devices send from the receiver or the stream to the API.\n" +
		"`go tool task conformance` makes this page from the tests that passed; `go tool task test` fails where a\n" +
		"sentence has no test, or where this page is not what the tests prove.\n"
)

// compare holds what tests proved to the contract and to the committed table.
func (p *proof) compare() error {
	proved := p.tests()
	committed, err := os.ReadFile(tablePath)
	if err != nil {
		return fmt.Errorf("reading what is proved: %w", err)
	}
	sentences := conformance.Sentences()
	return errors.Join(uncovered(sentences, proved), outdated(string(committed), render(sentences, proved)))
}

// write makes the table anew; it shows what is not proved too.
func (p *proof) write() error {
	proved, sentences := p.tests(), conformance.Sentences()
	table := render(sentences, proved)
	if err := os.WriteFile(tablePath, []byte(table), 0o644); err != nil { //nolint:gosec // A page for everybody.
		return fmt.Errorf("writing what is proved: %w", err)
	}
	return uncovered(sentences, proved)
}

// uncovered is an error where a sentence has no test.
func uncovered(sentences []conformance.Sentence, proved map[string][]testName) error {
	var lines []string
	for _, s := range sentences {
		if len(proved[s.ID]) == 0 && s.Unobservable == "" {
			lines = append(lines, "  "+s.ID+": "+s.Text)
		}
	}
	if len(lines) == 0 {
		return nil
	}
	return fmt.Errorf("no test that passes on every machine proves these sentences of the contract; name them in "+
		"one with conformance.Covers, or say in internal/conformance/*.tsv why they cannot be observed:\n%s",
		strings.Join(lines, "\n"))
}

// outdated is an error where the committed table is another one.
func outdated(committed, table string) error {
	if committed == table {
		return nil
	}
	old := map[string]bool{}
	for line := range strings.Lines(committed) {
		old[line] = true
	}
	var changed strings.Builder
	for line := range strings.Lines(table) {
		if old[line] {
			delete(old, line)
			continue
		}
		changed.WriteString("  + " + line)
	}
	for line := range strings.Lines(committed) {
		if old[line] {
			changed.WriteString("  - " + line)
		}
	}
	return fmt.Errorf("%s is not what the tests prove: run `go tool task conformance` and commit it. The difference:\n%s",
		tablePath, changed.String())
}

// render writes the table, which is the same wherever all tests pass.
func render(sentences []conformance.Sentence, proved map[string][]testName) string {
	var b strings.Builder
	b.WriteString(introduction)
	elsewhere := 0
	for _, s := range sentences {
		if s.Unobservable != "" {
			elsewhere++
		}
	}
	fmt.Fprintf(&b, "\nSentences: %d. Proved by tests: %d. Not observable, with where it is shown instead: %d.\n",
		len(sentences), len(sentences)-elsewhere, elsewhere)
	part := ""
	for _, s := range sentences {
		if s.Part != part {
			part = s.Part
			fmt.Fprintf(&b, "\n## %s\n\n| sentence | what it says | proved by |\n|---|---|---|\n", part)
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", s.ID, cell(s.Text), witnesses(s, proved[s.ID]))
	}
	return b.String()
}

func cell(text string) string { return strings.NewReplacer("|", `\|`, "<", "&lt;").Replace(text) }

// witnesses are the tests of a sentence, or what is said instead.
func witnesses(s conformance.Sentence, tests []testName) string {
	if s.Unobservable != "" {
		return "not observable: " + cell(s.Unobservable)
	}
	if len(tests) == 0 {
		return "**no test**"
	}
	var names []string
	for _, n := range tests[:min(len(tests), shownTests)] {
		names = append(names, fmt.Sprintf("`%s` %s", strings.TrimPrefix(n.pkg, "roomsensor/"), n.test))
	}
	more := ""
	if len(tests) > shownTests {
		more = fmt.Sprintf(" and %d more", len(tests)-shownTests)
	}
	return strings.Join(names, ", ") + more
}
