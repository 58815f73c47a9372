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
