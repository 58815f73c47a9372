package harness

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
	"roomsensor/test/ledger"
)

func TestWatcher(t *testing.T) {
	t.Parallel()
	w := NewWatcher(nil)
	require.Equal(t, Visible{}, w.Visible())
	began := time.Date(2026, time.November, 20, 10, 0, 0, 0, time.UTC)
	upload := func(id int) *ledger.Upload {
		return &ledger.Upload{ID: id, Unit: &ledger.Unit{Device: uuid.New()}, Readings: []roomsensor.Measurement{{MeasuredAt: began}}}
	}
	watched := upload(watchOneIn)
	w.Add([]*ledger.Upload{watched, upload(watchOneIn + 1), {ID: 2 * watchOneIn}}, began)
	w.Add([]*ledger.Upload{watched}, began.Add(time.Hour)) // Sent again before it is visible.
	devices, buckets := w.keys()
	require.Equal(t, []uuid.UUID{watched.Unit.Device}, devices)
	require.Len(t, buckets, 1)
	w.markVisible([]ledger.Key{ledger.KeyOf(watched.Unit.Device, began)}, began.Add(time.Second))
	require.Equal(t, Visible{1, time.Second, time.Second, time.Second}, w.Visible())
	devices, _ = w.keys()
	require.Empty(t, devices)

	for i := range 99 {
		w.took = append(w.took, time.Duration(i+2)*time.Second)
	}
	require.Equal(t, Visible{100, 51 * time.Second, 100 * time.Second, 100 * time.Second}, w.Visible())
}
