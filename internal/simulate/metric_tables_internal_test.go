package simulate

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMetricTables finds the tables that lack a metric: the compiler accepts a shorter literal.
func TestMetricTables(t *testing.T) {
	t.Parallel()
	for _, row := range sensors {
		require.NotZero(t, row)
	}
}
