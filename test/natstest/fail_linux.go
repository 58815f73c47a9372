package natstest

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// FailWrites makes the next write to a stream of a server in this process fail as on a full disk: it replaces the open
// files of messages below the directory of the server by /dev/full. The server needs a restart to write again.
func FailWrites(t testing.TB, storeDir string) {
	t.Helper()
	full, err := os.OpenFile("/dev/full", os.O_RDWR, 0)
	require.NoError(t, err)
	defer func() { require.NoError(t, full.Close()) }()
	const opened = "/proc/self/fd"
	files, err := os.ReadDir(opened)
	require.NoError(t, err)
	replaced := 0
	for _, file := range files {
		path, err := os.Readlink(filepath.Join(opened, file.Name()))
		if err != nil || !strings.HasPrefix(path, storeDir+"/") || !strings.HasSuffix(path, ".blk") {
			continue // It may be closed already.
		}
		number, err := strconv.Atoi(file.Name())
		require.NoError(t, err)
		require.NoError(t, syscall.Dup3(int(full.Fd()), number, syscall.O_CLOEXEC))
		replaced++
	}
	require.Positive(t, replaced, "the server has stored a message")
}

// FailWrites is FailWrites for a server from New.
func (s *Server) FailWrites(t testing.TB) {
	t.Helper()
	FailWrites(t, s.options.StoreDir)
}
