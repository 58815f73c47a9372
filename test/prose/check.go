package main

import (
	_ "embed"
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

//go:embed rules.yml
var rulesFile []byte

// rule is an entry of rules.yml.
type rule struct {
	Find   string `yaml:"find"`
	Unless string `yaml:"unless"`
	Use    string `yaml:"use"`

	find, unless *regexp.Regexp
}

// surroundings is the number of bytes on each side of a match to which unless applies.
const surroundings = 30

func loadRules() ([]rule, error) {
	var rules []rule
	if err := yaml.Unmarshal(rulesFile, &rules); err != nil {
		return nil, fmt.Errorf("reading the rules: %w", err)
	}
	for i := range rules {
		r := &rules[i]
		var err error
		if r.find, err = regexp.Compile(`(?i)\b(` + r.Find + `)\b`); err != nil {
			return nil, fmt.Errorf("compiling a rule: %w", err)
		}
		if r.Unless == "" {
			continue
		}
		if r.unless, err = regexp.Compile(`(?i)` + r.Unless); err != nil {
			return nil, fmt.Errorf("compiling a rule: %w", err)
		}
	}
	return rules, nil
}

// check returns what is wrong with a text.
func check(t text, rules []rule) []string {
	var problems []string
	for _, r := range rules {
		for _, at := range r.find.FindAllStringIndex(t.words, -1) {
			around := t.words[max(0, at[0]-surroundings):min(len(t.words), at[1]+surroundings)]
			if r.unless == nil || !r.unless.MatchString(around) {
				problems = append(problems, fmt.Sprintf("%q: use %s", t.words[at[0]:at[1]], r.Use))
			}
		}
	}
	if t.kind == logMessage {
		problems = append(problems, checkMessage(t.words)...)
	}
	return problems
}

// checkMessage checks the form of a log message: lower case, without a final period. An acronym may begin it.
func checkMessage(words string) []string {
	var problems []string
	first, _ := utf8.DecodeRuneInString(words)
	word, _, _ := strings.Cut(words, " ")
	if unicode.IsUpper(first) && word != strings.ToUpper(word) {
		problems = append(problems, fmt.Sprintf("%q: a log message begins in lower case", words))
	}
	if strings.HasSuffix(words, ".") {
		problems = append(problems, fmt.Sprintf("%q: a log message has no final period", words))
	}
	return problems
}
