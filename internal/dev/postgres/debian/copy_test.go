package debian

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// The path of a copy has the name of the user, which can have any character.
func TestPrograms(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), `[a]*\?`)
	bin := filepath.Join(dir, "usr", "lib", "postgresql", "17", "bin")
	require.NoError(t, os.MkdirAll(bin, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(bin, "postgres"), nil, 0o600))
	require.Equal(t, []string{filepath.Join(bin, "postgres")}, TimescaleDB.Programs(dir))
}
