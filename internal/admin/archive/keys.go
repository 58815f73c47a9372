package archive

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"os"

	"github.com/parquet-go/parquet-go"
)

// key is what identifies a row of a file, in its order.
type key struct {
	BucketAt int64  `parquet:"bucket_at,timestamp(microsecond)"`
	DeviceID string `parquet:"device_id"`
}

func (k key) before(o key) bool {
	return k.BucketAt < o.BucketAt || k.BucketAt == o.BucketAt && k.DeviceID < o.DeviceID
}

// keysOf returns the keys of the rows of a file; none without a file.
func keysOf(file *os.File) iter.Seq2[key, error] {
	return func(yield func(key, error) bool) {
		if file == nil {
			return
		}
		opened, err := openFile(file)
		if err != nil {
			yield(key{}, fmt.Errorf("reading a file: %w", err))
			return
		}
		rows := parquet.NewGenericReader[key](opened)
		defer func() { _ = rows.Close() }()
		piece := make([]key, 1024)
		for {
			n, err := rows.Read(piece)
			for _, k := range piece[:n] {
				if !yield(k, nil) {
					return
				}
			}
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(key{}, fmt.Errorf("reading the rows of a file: %w", err))
				return
			}
		}
	}
}

func openFile(file *os.File) (*parquet.File, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, err //nolint:wrapcheck // keysOf wraps it.
	}
	return parquet.OpenFile(file, info.Size()) //nolint:wrapcheck // keysOf wraps it.
}

// compare counts the rows of a file, which must be in their order, and those of the file before that it does not have.
func compare(before, after iter.Seq2[key, error]) (rows, missing int64, err error) {
	next, stop := iter.Pull2(before)
	defer stop()
	old, failed, more := next()
	var last key
	for k, err := range after {
		if err == nil && rows > 0 && !last.before(k) {
			err = fmt.Errorf("row %d is out of order", rows)
		}
		for ; more && failed == nil && old.before(k); old, failed, more = next() {
			missing++
		}
		if more && failed == nil && old == k {
			old, failed, more = next()
		}
		if err = errors.Join(err, failed); err != nil {
			return rows, missing, err
		}
		rows, last = rows+1, k
	}
	for ; more && failed == nil; old, failed, more = next() {
		missing++
	}
	return rows, missing, failed
}
