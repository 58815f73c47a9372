package demo

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// The log of a demo that runs for weeks takes the space of two files, and keeps the newest lines.
func TestLogFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "demo.log")
	read := func(path string) string {
		t.Helper()
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		return string(text)
	}
	log, err := createLog(path, 20)
	require.NoError(t, err)
	for i := range 100 {
		_, err := fmt.Fprintf(log, "line %02d\n", i)
		require.NoError(t, err)
	}
	require.NoError(t, log.Close())
	require.Equal(t, "line 98\nline 99\n", read(path))
	require.Equal(t, "line 96\nline 97\n", read(path+".1"))
	_, err = log.Write([]byte("late"))
	require.Error(t, err)

	log, err = createLog(path, 20)
	require.NoError(t, err)
	_, err = log.Write([]byte("a line that is longer than a file\n"))
	require.NoError(t, err)
	require.NoError(t, log.Close())
	require.Equal(t, "a line that is longer than a file\n", read(path))
	require.NoFileExists(t, path+".1", "the next start begins with an empty log")
}
