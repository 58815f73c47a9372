package conformance_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/test/conformance"
)

// TestCitations checks that every rule that a file of the repository cites exists in docs/contract.md.
func TestCitations(t *testing.T) {
	t.Parallel()
	var wrong []string
	for path, text := range citingFiles(t) {
		for i, line := range strings.Split(text, "\n") {
			for _, bad := range unresolved(line) {
				wrong = append(wrong, fmt.Sprintf("%s:%d: %s", path, i+1, bad))
			}
		}
	}
	require.Empty(t, wrong, "rules that docs/contract.md does not have:\n%s", strings.Join(wrong, "\n"))
}

// citingFiles returns the text of all files that may cite a rule, by path.
func citingFiles(t *testing.T) map[string]string {
	t.Helper()
	root := os.DirFS("../..")
	texts := map[string]string{}
	require.NoError(t, fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (len(path) > 1 && strings.HasPrefix(d.Name(), ".") || d.Name() == "bin" || path == "test/conformance"):
			return fs.SkipDir
		case d.IsDir() || path == "docs/conformance.md":
			return nil
		case slices.Contains([]string{".go", ".sql", ".md", ".yaml", ".yml"}, filepath.Ext(path)):
			text, err := fs.ReadFile(root, path)
			texts[path] = string(text)
			return err
		}
		return nil
	}))
	require.NotEmpty(t, texts)
	return texts
}

func TestUnresolvedCitations(t *testing.T) {
	t.Parallel()
	for line, want := range map[string][]string{
		"// The late-merge rule, decision 37 c.":                 nil,
		"// Decisions 37 and 38, decision 22 a 6, decision 13.":  nil,
		"// By decision 43 a response is fresh (decision 44 a).": nil,
		"// Decisions 31 a to e and 12 c, d":                     nil,
		"decision 41.13":                                         {"decision 41.13"},
		"decision 99":                                            {"decision 99"},
		"decision 37 z)":                                         {"decision 37 z"},
		"decision 22 a 99":                                       {"decision 22 a 99"},
		"decisions 3 and 77":                                     {"decision 77"},
		"// (spec 4, readings, rules 2 to 4)":                    nil,
		"// spec 2, CSV row; spec 8, idempotency rule 3":         nil,
		"// spec 7, the headers that belong to a status":         nil,
		"// (spec 4, raedings, rule 2)":                          {"spec 4, raedings"},
		"// spec 4, readings, rule 99.":                          {"spec 4, readings, rule 99"},
		"// A3.2 and A3.99":                                      {"A3.99"},
	} {
		require.Equal(t, want, unresolved(line), line)
	}
}

var (
	decisions = regexp.MustCompile(`(?i)\bdecisions? (\d+(?:\.\d+\b| [a-z]\b(?: \d+\b)?)?)((?:(?:, and |, | and | to )\d+(?: [a-z]\b)?)*)`)
	number    = regexp.MustCompile(`\d+(?: [a-z]\b)?`)
	spec      = regexp.MustCompile(`\bspec (\d)((?:, [^],.;:()"]*(?:\.[a-z]+)?[^],.;:()"]*)*)`)
	addition  = regexp.MustCompile(`\bA\d+\.\d+\b`)
)

// unresolved returns the rules cited in a line that do not exist.
func unresolved(line string) []string {
	var wrong []string
	for _, match := range decisions.FindAllStringSubmatch(line, -1) {
		cited := append([]string{match[1]}, number.FindAllString(match[2], -1)...)
		for _, id := range cited {
			if !isDecision(id) {
				wrong = append(wrong, "decision "+id)
			}
		}
	}
	for _, match := range spec.FindAllStringSubmatch(line, -1) {
		if bad := unresolvedSpec(match[1], match[2]); bad != "" {
			wrong = append(wrong, bad)
		}
	}
	for _, id := range addition.FindAllString(line, -1) {
		if !conformance.Anchors()[strings.ToLower(strings.ReplaceAll(id, ".", "-"))] {
			wrong = append(wrong, id)
		}
	}
	return wrong
}

// isDecision reports whether "37", "37 c" or "22 a 6" exists. The letter a may also be the article.
func isDecision(id string) bool {
	parts := strings.Split(id, " ")
	if len(parts) == 2 && parts[1] == "a" {
		parts = parts[:1]
	}
	return conformance.Anchors()["decision-"+strings.Join(parts, "-")]
}

// unresolvedSpec returns the first part of a citation such as "spec 4, readings, rule 3" that does not exist, or "". What
// follows an existing rule is free text unless it is a rule number or a single word.
func unresolvedSpec(part, rest string) string {
	anchor, id := "spec-"+part, "spec "+part
	if !conformance.Anchors()[anchor] {
		return id
	}
	for chunk := range strings.SplitSeq(strings.TrimPrefix(rest, ", "), ", ") {
		chunk = strings.TrimSpace(chunk)
		if chunk == "" {
			return ""
		}
		next := longest(anchor, chunk)
		if next == "" {
			words := strings.Fields(chunk)
			if len(words) == 1 || strings.HasPrefix(words[0], "rule") {
				return id + ", " + chunk
			}
			return ""
		}
		anchor, id = next, id+", "+chunk
	}
	return ""
}

// longest returns the anchor below parent that the first words of chunk name, or "".
func longest(parent, chunk string) string {
	chunk = strings.NewReplacer("rules ", "", "rule ", "").Replace(strings.ToLower(chunk))
	words := strings.Fields(chunk)
	for n := len(words); n > 0; n-- {
		for _, separator := range []string{"_", "-"} {
			if a := parent + "-" + strings.Join(words[:n], separator); conformance.Anchors()[a] {
				return a
			}
		}
	}
	return ""
}
