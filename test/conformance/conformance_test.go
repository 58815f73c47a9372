package conformance_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/test/conformance"
)

var ruleID = regexp.MustCompile(`^(spec [1-9](, [a-z0-9_.]+|, rule [0-9]+)+|decision [1-9][0-9]?( [a-z]( [0-9]+)?)?|A[0-9]+\.[0-9]+)$`)

func TestRules(t *testing.T) {
	t.Parallel()
	rules := conformance.Rules()
	byID := map[string]conformance.Rule{}
	for _, r := range rules {
		require.Regexp(t, ruleID, r.ID)
		require.True(t, conformance.Anchors()[r.Anchor], r.Anchor)
		require.NotEmpty(t, r.Section, r.ID)
		require.NotContains(t, r.Section, "<", r.ID)
		require.True(t, r.Unobservable == "" || strings.HasSuffix(r.Unobservable, "."), r.ID)
		byID[r.ID] = r
	}
	require.Len(t, byID, len(rules), "ids are unique")

	require.Equal(t, "decision-37-c", byID["decision 37 c"].Anchor)
	require.Equal(t, "Decision 37: Buckets and merging", byID["decision 37 c"].Section)
	require.Equal(t, "GET /devices/{device_id}/readings", byID["spec 4, readings, rule 1"].Section)
	require.NotEmpty(t, byID["decision 25 e"].Unobservable)
	require.Contains(t, byID, "decision 8 b 2")
	require.Contains(t, byID, "decision 13")
	require.NotContains(t, byID, "decision 8 b", "it has sub-rules")
	require.NotContains(t, byID, "a9", "it is of the next version")
	require.True(t, conformance.Anchors()["a9"])
}

// recorder is a testing.TB that records attributes and failures.
type recorder struct {
	testing.TB
	attrs  []string
	failed bool
}

func (r *recorder) Helper()                { /* It prints no lines. */ }
func (r *recorder) Attr(key, value string) { r.attrs = append(r.attrs, key+"="+value) }
func (r *recorder) Fatalf(string, ...any)  { r.failed = true }

func TestCovers(t *testing.T) {
	t.Parallel()
	for id, ok := range map[string]bool{
		"decision 37 c":             true,
		"spec 4, readings, rule 1":  true,
		"spec 4, readings, rule 99": false,
		"decision 25 e":             false, // It is unobservable.
		"a9":                        false, // It is of the next version.
	} {
		r := &recorder{TB: t}
		conformance.Covers(r, id)
		require.Equal(t, ok, !r.failed, id)
		if ok {
			require.Equal(t, []string{"contract=" + id}, r.attrs)
		}
	}
}
