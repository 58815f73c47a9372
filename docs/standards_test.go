package docs_test

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// standardsPage is the page whose answers TestStandards checks.
const standardsPage = "operate/asvs.md"

var (
	quoted      = regexp.MustCompile("`([^`]+)`")
	namedTest   = regexp.MustCompile(`^(\w+)\.((?:Test|Fuzz)\w+)$`)
	namedFile   = regexp.MustCompile(`^[\w./-]+\.(?:css|go|html|js|md|conf|yaml|yml)$|^(?:deploy|\.ci)/\w+$|^Dockerfile$`)
	namedConfig = regexp.MustCompile(`^[A-Z]+(?:_[A-Z]+)+$`)
	testFunc    = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
)

// answer is a row of the page.
type answer struct {
	requirements     []string
	status, evidence string
}

// answers returns the rows of the tables of requirements.
func answers(t *testing.T, page string) (all []answer) {
	t.Helper()
	for line := range strings.Lines(page) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		if !strings.HasPrefix(line, "| ") || len(cells) != 4 || strings.TrimSpace(cells[0]) == "requirement" {
			continue
		}
		row := answer{strings.Split(strings.TrimSpace(cells[0]), ", "), cells[2], strings.TrimSpace(cells[3])}
		require.Contains(t, []string{"test", "design", "setting", "n/a", "not met"}, row.status, line)
		if row.status == "test" {
			require.True(t, slices.ContainsFunc(quotedIn(row.evidence), namedTest.MatchString), "no test: %s", line)
		}
		all = append(all, row)
	}
	return all
}

// quotedIn returns what is in backticks.
func quotedIn(text string) (all []string) {
	for _, match := range quoted.FindAllStringSubmatch(text, -1) {
		all = append(all, match[1])
	}
	return all
}

// testsOf returns the tests and fuzz targets of the repository as "package.Test", with the last part of the directory.
func testsOf(t *testing.T, root string) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path) //nolint:gosec // A file of the repository.
		for _, match := range testFunc.FindAllSubmatch(text, -1) {
			all[filepath.Base(filepath.Dir(path))+"."+string(match[1])] = true
		}
		return err
	}))
	return all
}

// TestStandards checks that the page answers each requirement exactly once, that the tests, files and settings that it
// names exist, and its counts.
func TestStandards(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(standardsPage)
	require.NoError(t, err)
	settings, err := os.ReadFile("operate/configuration.md")
	require.NoError(t, err)
	page, tests := string(text), testsOf(t, "..")
	require.NotEmpty(t, tests)
	for _, name := range quotedIn(page) {
		switch {
		case namedTest.MatchString(name):
			require.True(t, tests[name], "no test %s", name)
		case namedFile.MatchString(name):
			require.FileExists(t, filepath.Join("..", name))
		case namedConfig.MatchString(name) && name != "CGO_ENABLED":
			require.Contains(t, string(settings), "`"+name+"`")
		}
	}
	rows := answers(t, page)
	_, reasons, _ := strings.Cut(page, "## What is not met")
	reasons, _, _ = strings.Cut(reasons, "\n## ")
	for _, list := range []struct{ title, noun, file string }{
		{"ASVS", "requirements", "asvs-5.0.0.txt"}, {"OpenSSF", "criteria", "openssf-passing.txt"},
	} {
		want := requirements(t, list.file)
		counts, answered := map[string]int{}, map[string]bool{}
		for _, row := range rows {
			for _, name := range row.requirements {
				if want[name] {
					require.False(t, answered[name], "twice: %s", name)
					answered[name] = true
					counts[row.status]++
					require.True(t, row.status != "not met" || row.evidence != "see above" || strings.Contains(reasons, name), name)
				}
			}
		}
		require.Equal(t, slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(answered)))
		require.Contains(t, page, fmt.Sprintf("%s: %d %s: %d test, %d design, %d setting, %d n/a, %d not met.", list.title,
			len(want), list.noun, counts["test"], counts["design"], counts["setting"], counts["n/a"], counts["not met"]))
	}
	all := 0
	for _, row := range rows {
		all += len(row.requirements)
	}
	require.Equal(t, len(requirements(t, "asvs-5.0.0.txt"))+len(requirements(t, "openssf-passing.txt")), all,
		"a row names something that is no requirement")
}

// requirements returns the first words of the lines of a list.
func requirements(t *testing.T, file string) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", file))
	require.NoError(t, err)
	all := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		name, _, _ := strings.Cut(line, " ")
		all[name] = true
	}
	return all
}
