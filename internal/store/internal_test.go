package store

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"roomsensor/db"
	"roomsensor/internal/roomsensor"
)

// These give the tests of package store_test access to what an export and a batch decide by their size.

// Slices returns the windows in which an export is read.
func Slices(opened OpenedExport) []roomsensor.Window {
	e := opened.(*Export)
	return slicesOf(e.extent, e.rows, e.store.sliceRows)
}

// SetSliceRows sets the target number of rows of a slice.
func (s *Store) SetSliceRows(n int) { s.sliceRows = n }

// SetMinCopyRows sets from how many rows on a batch is copied.
func (s *Store) SetMinCopyRows(n int) { s.minCopyRows = n }

// TestFitWindowNone checks that no window is offered if one bucket has too many readings already, and that the count
// stops above a million (decision 30).
func TestFitWindowNone(t *testing.T) {
	t.Parallel()
	from := time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)
	const perBucket = roomsensor.MaxExportRows + 1
	tooMany, err := fitWindow(roomsensor.Window{From: from, To: from.AddDate(0, 0, 1)},
		func(w roomsensor.Window, most int64) (int64, error) {
			buckets := (w.To.Sub(from) + roomsensor.BucketLength - 1) / roomsensor.BucketLength
			return min(most, perBucket*int64(buckets)), nil
		})
	require.NoError(t, err)
	require.Equal(t, roomsensor.ExportCountCap+1, tooMany.Rows)
	require.Nil(t, tooMany.FitsUntil)
}

// argRecorder is a connection that records the arguments of each query by the query's text.
type argRecorder map[string][]any

func (r argRecorder) Exec(_ context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	r[sql] = args
	return pgconn.CommandTag{}, nil
}

func (r argRecorder) Query(_ context.Context, sql string, args ...any) (pgx.Rows, error) {
	r[sql] = args
	return nil, pgx.ErrNoRows
}

func (r argRecorder) QueryRow(_ context.Context, sql string, args ...any) pgx.Row {
	r[sql] = args
	return noRow{}
}

type noRow struct{}

func (noRow) Scan(...any) error { return pgx.ErrNoRows }

// TestPositional checks that positional returns the arguments in the order in which the generated methods pass them,
// for each query that runs by its text. All arguments of a query differ.
func TestPositional(t *testing.T) {
	t.Parallel()
	from := time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)
	setting := db.SettingSetParams{Name: "name", Value: "value"}
	claim := db.IdempotencyKeyClaimParams{
		KeyID: "key", Method: "method", Path: "path", IdempotencyKey: "idempotency key", BodySha256: []byte("body"),
	}
	export := db.ReadingExportParams{
		DeviceIds: []uuid.UUID{{1}}, TeamID: uuid.UUID{2}, WindowFrom: from, WindowTo: from.AddDate(0, 0, 1),
	}
	page := db.ReadingListParams{
		DeviceID: uuid.UUID{1}, TeamID: uuid.UUID{2}, WindowFrom: from, WindowTo: from.AddDate(0, 0, 1), Most: 10,
	}
	recorded, queries := argRecorder{}, db.New()
	_ = queries.SettingSet(t.Context(), recorded, setting)
	_, _ = queries.IdempotencyKeyClaim(t.Context(), recorded, claim)
	_, _ = queries.ReadingExport(t.Context(), recorded, export)
	_, _ = queries.ReadingList(t.Context(), recorded, page)
	require.Equal(t, argRecorder{
		db.SettingSet: positional(setting), db.IdempotencyKeyClaim: positional(claim),
		db.ReadingExport: positional(export), db.ReadingList: positional(page),
	}, recorded)

	checked := []string{"SettingSet", "IdempotencyKeyClaim", "ReadingExport", "ReadingList"}
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	var used []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, match := range regexp.MustCompile(`positional\(db\.(\w+)Params\{`).FindAllSubmatch(text, -1) {
			used = append(used, string(match[1]))
		}
	}
	require.NotEmpty(t, used)
	require.Subset(t, checked, used, "add these queries to this test")
}
