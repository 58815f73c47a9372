package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"roomsensor/test/conformance"
)

const (
	// pagePath is the committed page, from the root of the module.
	pagePath = "docs/conformance.md"
	// shownTests is the number of tests that the page names per rule.
	shownTests = 3

	introduction = `# Conformance

This page lists every rule of the [contract](contract.md) that is in force, with the tests that prove it: over HTTP
against the running service, and for uploads from the receiver or the stream to the API.

` + "`go tool task conformance` writes this page from the tests that passed. `go tool task test`" + ` fails
if a rule has no test or if this page is out of date.
`
)

// checkPage returns an error if a rule has no test or if the committed page is out of date.
func (r *results) checkPage() error {
	committed, err := os.ReadFile(pagePath)
	if err != nil {
		return fmt.Errorf("reading the conformance page: %w", err)
	}
	err = r.unproven()
	if page := r.page(conformance.Rules()); string(committed) != page {
		err = errors.Join(err, fmt.Errorf("%s is out of date: run `go tool task conformance` and commit it, or correct:\n%s",
			pagePath, differingLines(string(committed), page)))
	}
	return err
}

// differingLines returns the lines of before that after lacks, marked with "-", and those of after that before lacks,
// marked with "+".
func differingLines(before, after string) string {
	var text strings.Builder
	for _, side := range []struct{ mark, lines, other string }{{"-", before, after}, {"+", after, before}} {
		other := strings.Split(side.other, "\n")
		for line := range strings.SplitSeq(side.lines, "\n") {
			if !slices.Contains(other, line) {
				fmt.Fprintf(&text, "%s%s\n", side.mark, line)
			}
		}
	}
	return text.String()
}

// checkTrials returns an error if a trial claims to prove a rule: the page is written without the trials.
func (r *results) checkTrials() error {
	if len(r.claims) == 0 {
		return nil
	}
	return fmt.Errorf("trials may not call conformance.Covers, because %s is written without them: %q",
		pagePath, slices.Sorted(maps.Keys(r.claims)))
}

// writePage writes the page. It returns an error if a rule has no test; the page shows that too.
func (r *results) writePage() error {
	//nolint:gosec // Everybody may read the page.
	if err := os.WriteFile(pagePath, []byte(r.page(conformance.Rules())), 0o644); err != nil {
		return fmt.Errorf("writing the conformance page: %w", err)
	}
	return r.unproven()
}

// unproven returns an error that lists the rules without a test.
func (r *results) unproven() error {
	var lines strings.Builder
	for _, rule := range conformance.Rules() {
		if rule.Unobservable == "" && len(r.proofs(rule.ID)) == 0 {
			fmt.Fprintf(&lines, "\n  %s (docs/contract.md#%s)", rule.ID, rule.Anchor)
		}
	}
	if lines.Len() == 0 {
		return nil
	}
	return fmt.Errorf("these rules of the contract have no test that passes on every machine; name them in a test with "+
		"conformance.Covers, or list them in test/conformance/unobservable.tsv:%s", lines.String())
}

// page returns the text of the page. It is the same on every machine on which all tests pass.
func (r *results) page(rules []conformance.Rule) string {
	var table strings.Builder
	section, unobservable := "", 0
	for _, rule := range rules {
		if rule.Section != section {
			section = rule.Section
			fmt.Fprintf(&table, "\n## %s\n\n", section)
			if text := conformance.Unnoticed(section); text != "" {
				fmt.Fprintf(&table, "These tests would not notice: %s\n\n", text)
			}
			fmt.Fprint(&table, "| rule | proved by |\n|---|---|\n")
		}
		proof := r.proofCell(rule)
		if rule.Unobservable != "" {
			unobservable++
			proof = "not observable: " + escape(rule.Unobservable)
		}
		fmt.Fprintf(&table, "| [%s](contract.md#%s) | %s |\n", rule.ID, rule.Anchor, proof)
	}
	return fmt.Sprintf("%s\nRules: %d. Proved by tests: %d. Not observable, with another proof: %d.\n%s",
		introduction, len(rules), len(rules)-unobservable, unobservable, table.String())
}

func (r *results) proofCell(rule conformance.Rule) string {
	tests := r.proofs(rule.ID)
	switch {
	case len(tests) == 0:
		return "**no test**"
	case len(tests) > shownTests:
		return fmt.Sprintf("%s and %d more", strings.Join(tests[:shownTests], ", "), len(tests)-shownTests)
	}
	return strings.Join(tests, ", ")
}

func escape(text string) string { return strings.NewReplacer("|", `\|`, "<", "&lt;").Replace(text) }
