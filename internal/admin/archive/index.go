package archive

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/parquet-go/parquet-go"

	"roomsensor/internal/roomsensor"
)

// indexPath is the path of the index.
const indexPath = "index.parquet"

// Entry is a row of the index: a file.
type Entry struct {
	Path             string    `parquet:"path"`
	TeamID           string    `parquet:"team_id,dict"`
	Month            string    `parquet:"month,dict"`
	Rows             int64     `parquet:"rows"`
	Devices          int64     `parquet:"devices"`
	FirstBucketAt    time.Time `parquet:"first_bucket_at,timestamp(microsecond)"`
	LastBucketAt     time.Time `parquet:"last_bucket_at,timestamp(microsecond)"`
	Bytes            int64     `parquet:"bytes"`
	SHA256           string    `parquet:"sha256"`
	NewestIngestedAt time.Time `parquet:"newest_ingested_at,timestamp(microsecond)"`
	WrittenAt        time.Time `parquet:"written_at,timestamp(microsecond)"`
}

// equals reports whether the file has the readings of a summary. A reading that is inserted or changed is newer than
// all before, and one that is deleted changes the number.
func (e *Entry) equals(s *roomsensor.ReadingSummary) bool {
	return e.Rows == s.Readings && e.Devices == s.Devices && e.NewestIngestedAt.Equal(s.NewestIngestedAt)
}

type index struct {
	entries map[string]Entry // by path
	sizes   map[string]int64 // of the files, by path, also of those without an entry
	changed bool
}

// readIndex reads the index, without the files that are missing or have another size.
func readIndex(ctx context.Context, files Files) (*index, error) {
	sizes, err := files.List(ctx)
	if err != nil {
		return nil, err
	}
	x := &index{entries: map[string]Entry{}, sizes: sizes}
	size, found := sizes[indexPath]
	if !found {
		return x, nil
	}
	file, err := files.Open(ctx, indexPath)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	entries, err := parquet.Read[Entry](file, size)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", indexPath, err)
	}
	for _, e := range entries {
		if bytes, found := sizes[e.Path]; found && bytes == e.Bytes {
			x.entries[e.Path] = e
		} else {
			x.changed = true
		}
	}
	return x, nil
}

func (x *index) put(e *Entry) { x.entries[e.Path], x.changed = *e, true }

// write stores the index, if it has changed, also after ctx has ended.
func (x *index) write(ctx context.Context, files Files) error {
	if !x.changed {
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	file, err := files.Create(indexPath)
	if err != nil {
		return err
	}
	defer discard(file)
	entries := make([]Entry, 0, len(x.entries))
	for _, path := range slices.Sorted(maps.Keys(x.entries)) {
		entries = append(entries, x.entries[path])
	}
	sum := sha256.New()
	if err := parquet.Write(io.MultiWriter(file, sum), entries, parquet.Compression(&parquet.Zstd)); err != nil {
		return fmt.Errorf("writing %s: %w", indexPath, err)
	}
	x.changed = false
	return files.Store(ctx, file, indexPath, hex.EncodeToString(sum.Sum(nil)))
}
