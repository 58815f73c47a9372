package proctest_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/test/proctest"
)

// TestFreeAddress draws 400 of 17,000 ports: without the reservation some would repeat.
func TestFreeAddress(t *testing.T) {
	t.Parallel()
	given := map[string]bool{}
	for range 400 {
		address := proctest.Address(t)
		require.False(t, given[address], address)
		given[address] = true
	}
}
