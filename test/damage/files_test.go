package damage

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// files are those of a stopped server.
type files struct {
	t   *testing.T
	rng *rand.Rand
	dir string
}

// change replaces the content of a file, with its owner and mode.
func (f *files) change(name string, change func([]byte) []byte) {
	f.t.Helper()
	path := filepath.Join(f.dir, name)
	data, err := os.ReadFile(path)
	require.NoError(f.t, err)
	changed := change(data)
	require.NoError(f.t, os.WriteFile(path, changed, 0))
}

// flip inverts a random bit between two parts of a file.
func flip(name string, from, to float64) func(*files) {
	return func(f *files) {
		f.change(name, func(data []byte) []byte {
			size := float64(len(data))
			at := int(from*size) + f.rng.IntN(max(1, int((to-from)*size)))
			f.t.Logf("%s: a bit of byte %d of %d", name, at, len(data))
			data[at] ^= 1 << f.rng.IntN(8)
			return data
		})
	}
}

// flipUpload inverts a random bit of an upload, and not of the lengths between them.
func flipUpload(name string) func(*files) {
	return func(f *files) {
		f.change(name, func(data []byte) []byte {
			const around = 64 // bytes of an upload are the same letter
			at := len(data)/3 + f.rng.IntN(len(data)/3)
			for bytes.Count(data[at-around:at+around], data[at:at+1]) != 2*around {
				at += around
			}
			f.t.Logf("%s: a bit of byte %d of %d", name, at, len(data))
			data[at] ^= 1 << f.rng.IntN(8)
			return data
		})
	}
}

// flipLength damages the length of the first record of blocks.
func flipLength(pattern string) func(*files) {
	return func(f *files) {
		paths, err := filepath.Glob(filepath.Join(f.dir, pattern))
		require.NoError(f.t, err)
		require.NotEmpty(f.t, paths)
		for _, path := range paths {
			f.change(strings.TrimPrefix(path, f.dir), func(data []byte) []byte {
				data[2] ^= 0x10
				return data
			})
		}
	}
}

// cut removes bytes from the end of a file.
func cut(name string, size int) func(*files) {
	return func(f *files) { f.change(name, func(data []byte) []byte { return data[:len(data)-size] }) }
}

// remove removes files.
func remove(pattern string) func(*files) {
	return func(f *files) {
		paths, err := filepath.Glob(filepath.Join(f.dir, pattern))
		require.NoError(f.t, err)
		require.NotEmpty(f.t, paths)
		for _, path := range paths {
			require.NoError(f.t, os.Remove(path))
		}
	}
}
