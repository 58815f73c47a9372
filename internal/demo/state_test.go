package demo

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// The log of a demo that runs for weeks does not fill the disk, and has the newest lines.
func TestLogFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "demo.log")
	for range 2 { // The next start begins with an empty log.
		log, err := createLog(path, 20)
		require.NoError(t, err)
		for i := range 6 {
			_, err := fmt.Fprintf(log, "line %02d\n", i)
			require.NoError(t, err)
		}
		require.NoError(t, log.Close())
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, "line 04\nline 05\n", string(text))
	}
}
