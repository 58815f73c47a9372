package wording

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMetricTables finds the tables that lack a metric: the compiler accepts a shorter literal.
func TestMetricTables(t *testing.T) {
	t.Parallel()
	for _, row := range MetricTexts {
		require.NotZero(t, row)
	}
	for _, row := range remedies {
		require.NotZero(t, row)
	}
}
