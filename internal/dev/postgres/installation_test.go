package postgres

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSufficient(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{
		"":             "does not have the extension",
		"2.19.0":       "",
		"2.29.0-dev":   "",
		"3.0":          "",
		"10":           "",
		"2.18.2":       "is 2.18.2 and 2.19 is the oldest that works",
		"1.99":         "is 1.99 and 2.19 is the oldest that works",
		"2":            "is 2 and 2.19 is the oldest that works",
		"not a number": "is the oldest that works",
	} {
		err := sufficient(version)
		if want == "" {
			require.NoError(t, err, version)
			continue
		}
		require.ErrorContains(t, err, want, version)
	}
}

func TestFailureNamesTheFourOptions(t *testing.T) {
	t.Parallel()
	s := starter{options: Options{URLVariable: "TEST_DATABASE_URL"}}
	err := s.failure(s.ways(), []string{"not set", "none installed", "no engine", "no Debian"})
	for _, part := range []string{
		"1. set TEST_DATABASE_URL", "(now: not set)", "2. install PostgreSQL 15 or later", "(now: none installed)",
		"3. start Docker", image(), "(now: no engine)", "4. on Debian or Ubuntu", "mmdebstrap, patchelf", "(now: no Debian)",
	} {
		require.ErrorContains(t, err, part)
	}
}
