package procs_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/procs"
)

// Of 17,000 ports 400 that are drawn without regard to one another repeat some.
func TestAnAddressIsGivenOutOnce(t *testing.T) {
	t.Parallel()
	given := map[string]bool{}
	for range 400 {
		address, err := procs.FreeAddress()
		require.NoError(t, err)
		require.False(t, given[address], address)
		given[address] = true
	}
}
