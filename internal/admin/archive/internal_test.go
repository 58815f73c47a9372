package archive

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"iter"
	"os"
	"path/filepath"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"
)

// keys returns keys of a device, and then an error unless that is nil.
func keys(failed error, buckets ...int64) iter.Seq2[key, error] {
	return func(yield func(key, error) bool) {
		for _, b := range buckets {
			if !yield(key{b, "a"}, nil) {
				return
			}
		}
		if failed != nil {
			yield(key{}, failed)
		}
	}
}

func TestCompare(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		before, after []int64
		missing       int64
	}{
		{nil, []int64{1, 2}, 0},
		{[]int64{1, 2}, []int64{1, 2}, 0},
		{[]int64{2}, []int64{1, 2, 3}, 0},
		{[]int64{1, 2, 3}, []int64{2}, 2},
		{[]int64{1, 4, 5}, []int64{2, 3, 4, 6}, 2},
		{[]int64{8, 9}, []int64{1, 2}, 2},
	} {
		rows, missing, err := compare(keys(nil, c.before...), keys(nil, c.after...))
		require.NoError(t, err)
		require.EqualValues(t, len(c.after), rows)
		require.Equal(t, c.missing, missing, "%v", c)
	}
	_, _, err := compare(keys(nil), keys(nil, 1, 3, 2))
	require.ErrorContains(t, err, "row 2 is out of order")
	_, _, err = compare(keys(nil), keys(nil, 1, 1))
	require.ErrorContains(t, err, "row 1 is out of order")
	broken := errors.New("broken")
	for _, buckets := range [][]int64{nil, {1}, {1, 2}} {
		_, _, err = compare(keys(broken, buckets...), keys(nil, 1, 2))
		require.ErrorIs(t, err, broken)
		_, _, err = compare(keys(nil, 1, 2), keys(broken, buckets...))
		require.ErrorIs(t, err, broken)
	}
}

// TestVerify checks that a file is not accepted if it was stored with other bytes or rows.
func TestVerify(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "f")
	require.NoError(t, parquet.WriteFile(path, []key{{1, "a"}, {2, "a"}}))
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	defer func() { require.NoError(t, file.Close()) }()
	e := &Entry{Rows: 2}
	_, err = e.verify(file, nil)
	require.ErrorContains(t, err, "was stored with other content")
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	sum := sha256.Sum256(content)
	e.SHA256 = hex.EncodeToString(sum[:])
	_, err = e.verify(file, nil)
	require.NoError(t, err)
	e.Rows = 3
	_, err = e.verify(file, nil)
	require.ErrorContains(t, err, "2 rows instead of 3")
	_, err = file.WriteAt([]byte{0}, 8)
	require.NoError(t, err)
	_, err = e.verify(file, nil)
	require.ErrorContains(t, err, "was stored with other content")
}
