package store

import (
	"encoding/binary"
	"math"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"roomsensor/internal/roomsensor"
)

// The rows of pages and exports are read in PostgreSQL's binary form, straight
// into the domain: no allocation for a row and none for a null.

// postgresEpoch is the instant from which PostgreSQL counts, in microseconds
// since 1970.
const postgresEpoch = 946_684_800_000_000

// The times that the API's form of a timestamp can print. PostgreSQL knows
// earlier and later ones, infinity among them, which stand in a row that was
// put there by SQL; they are served as the nearest that can be printed.
var (
	firstTime = time.Date(1, time.January, 1, 0, 0, 0, 0, time.UTC).UnixMicro() - postgresEpoch
	lastTime  = roomsensor.Forever.UnixMicro() - postgresEpoch
)

// rawTime reads a timestamptz: microseconds since 2000.
func rawTime(b []byte) time.Time {
	micros := int64(binary.BigEndian.Uint64(b)) //nolint:gosec // Two's complement, as it was sent.
	return time.UnixMicro(min(max(micros, firstTime), lastTime) + postgresEpoch).UTC()
}

// rawValues reads five columns of type real; null is a nil slice.
func rawValues(columns [][]byte) (v roomsensor.Values) {
	for i, m := range roomsensor.Metrics {
		if columns[i] != nil {
			v.Set(m, math.Float32frombits(binary.BigEndian.Uint32(columns[i])))
		}
	}
	return v
}

// rawReading reads the columns of ReadingPage.
func rawReading(rows pgx.Rows) roomsensor.Reading {
	c := rows.RawValues()
	return roomsensor.Reading{
		BucketAt:   rawTime(c[0]),
		Values:     rawValues(c[1 : 1+roomsensor.MetricCount]),
		IngestedAt: rawTime(c[1+roomsensor.MetricCount]),
	}
}

// rawExportRow reads the columns of ReadingExport.
func rawExportRow(rows pgx.Rows) roomsensor.ExportRow {
	c := rows.RawValues()
	return roomsensor.ExportRow{
		DeviceID: uuid.UUID(c[0]),
		BucketAt: rawTime(c[1]),
		Values:   rawValues(c[2 : 2+roomsensor.MetricCount]),
	}
}
