package samples_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// docsDir has the Markdown files of the pages.
const docsDir = "../../docs"

// startPage is the page whose samples build on one another.
const startPage = "README.md"

// sample is a program in the pages.
type sample struct {
	page, language string
	number         int // of the sample among those of its language in the page
	code           string
	// needs are the modules that the sample imports: the words after the language, except retries.
	needs []string
	// retries says that the sample repeats requests that got 429 or 503.
	retries  bool
	programs string // directory of the program, if a sample needs it
}

var fence = regexp.MustCompile("(?ms)^([ ]*)```(bash|python|r|javascript|go)( [^\n]*)?\n(.*?)^[ ]*```$")

// allSamples returns the samples of all pages.
func allSamples(t *testing.T) (all []sample) {
	t.Helper()
	for _, pattern := range []string{"*.md", "guides/*.md", "operate/*.md"} {
		files, err := filepath.Glob(filepath.Join(docsDir, pattern))
		require.NoError(t, err)
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			page, err := filepath.Rel(docsDir, file)
			require.NoError(t, err)
			all = append(all, samplesOf(page, string(text))...)
		}
	}
	require.NotEmpty(t, all)
	return all
}

// samplesOf returns the samples of a page. On the start page, the samples in a language are one program, except curl and
// Go, whose samples are whole.
func samplesOf(page, text string) (all []sample) {
	for _, match := range fence.FindAllStringSubmatch(text, -1) {
		code := strings.ReplaceAll("\n"+match[4], "\n"+match[1], "\n")[1:] // In a list, the block is indented.
		s := sample{page: page, language: match[2], code: code, needs: strings.Fields(match[3])}
		before := slices.IndexFunc(all, func(other sample) bool { return other.language == s.language })
		if page == startPage && s.language != "bash" && s.language != "go" && before >= 0 {
			first := &all[before]
			first.code += s.code
			first.needs = slices.Compact(slices.Sorted(slices.Values(append(first.needs, s.needs...))))
			continue
		}
		if at := slices.Index(s.needs, "retries"); at >= 0 {
			s.retries = true
			s.needs = slices.Delete(s.needs, at, at+1)
		}
		for _, other := range all {
			if other.language == s.language {
				s.number++
			}
		}
		all = append(all, s)
	}
	return all
}
