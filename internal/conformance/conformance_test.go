package conformance_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/conformance"
)

var id = regexp.MustCompile(`^(spec [1-9], [A-Za-z0-9/_.,{} -]*[A-Za-z0-9_}]|decision [1-9][0-9]?(\.[1-9][0-9]?)?)$`)

func TestSentencesAreWellFormed(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, s := range conformance.Sentences() {
		require.Regexp(t, id, s.ID)
		require.False(t, seen[s.ID], "%s stands twice", s.ID)
		seen[s.ID] = true
		require.NotEmpty(t, s.Part, s.ID)
		for _, text := range []string{s.Text, s.Unobservable} {
			require.Equal(t, strings.TrimSpace(text), text, s.ID)
			require.True(t, text == "" || strings.HasSuffix(text, "."), "%s: a sentence ends in a period", s.ID)
		}
		require.NotEmpty(t, s.Text, s.ID)
	}
	require.NotEmpty(t, seen)
}

// recorder is a test that notes what is said to it.
type recorder struct {
	testing.TB
	attrs  []string
	failed bool
}

func (r *recorder) Helper()                { /* It has no lines of its own. */ }
func (r *recorder) Attr(key, value string) { r.attrs = append(r.attrs, key+"="+value) }
func (r *recorder) Fatalf(string, ...any)  { r.failed = true }

func TestCoversNamesKnownSentences(t *testing.T) {
	t.Parallel()
	known := &recorder{TB: t}
	first := conformance.Sentences()[0].ID
	conformance.Covers(known, first)
	require.Equal(t, []string{"contract=" + first}, known.attrs)
	require.False(t, known.failed)

	unknown := &recorder{TB: t}
	conformance.Covers(unknown, "spec 4, readings, rule 99")
	require.True(t, unknown.failed)
}
