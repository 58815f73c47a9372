package api_test

import (
	"bytes"
	"context"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/api"
	"roomsensor/internal/conformance"
	"roomsensor/internal/roomsensor"
)

// bursting commits something as soon as an export has counted its rows.
type bursting struct {
	api.Backend
	burst func()
}

func (b *bursting) OpenExport(ctx context.Context, team uuid.UUID, q roomsensor.ExportQuery) (api.Export, error) {
	export, err := b.Backend.OpenExport(ctx, team, q)
	b.burst()
	return export, err
}

// Decision 32: the count and the rows are of one snapshot, whatever is
// committed in between.
func TestExportIsOneSnapshot(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 32.2", "decision 32.5")
	f := setup(t)
	other := number(0xde, 2)
	f.addDevice(t, teamID, other, "dev:2")
	for _, shape := range []string{"long", "wide"} {
		f.exec(t, `DELETE FROM readings`)
		f.addReadings(t, deviceID, start.Add(-20*time.Hour), 120)
		path := "/readings.csv?shape=" + shape
		before := f.get(t, path)
		f.replica = f.serve(t, &bursting{backend{f.store}, func() {
			f.exec(t, `DELETE FROM readings WHERE bucket_at < $1`, start.Add(-15*time.Hour))
			f.exec(t, `UPDATE readings SET co2_ppm = 9999`)
			f.addReadings(t, other, start.Add(-22*time.Hour), 100)
		}}, nil)
		during := f.get(t, path)
		require.Equal(t, http.StatusOK, during.status)
		require.Equal(t, string(before.body), string(during.body))
		require.Equal(t, "120", during.header.Get("X-Row-Count"))
		require.Equal(t, 121, bytes.Count(during.body, []byte("\n")))

		f.replica = f.serve(t, backend{f.store}, nil)
		after := f.get(t, path)
		require.Contains(t, string(after.body), "9999")
		lines := bytes.Count(after.body, []byte("\n")) - 1
		require.Equal(t, strconv.Itoa(lines), after.header.Get("X-Row-Count"))
	}
}
