package baseline

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"roomsensor/internal/roomsensor"
)

// CopyFrom stores rows with pgx's CopyFrom. A row that exists already is an error.
func CopyFrom(ctx context.Context, pool *pgxpool.Pool, rows []roomsensor.DeviceMeasurement) error {
	_, err := pool.CopyFrom(ctx, pgx.Identifier{"readings"},
		[]string{"device_id", "bucket_at", "measured_at", "co2_ppm", "temp_c", "humidity_pct", "lux", "spl_db"},
		pgx.CopyFromSlice(len(rows), func(i int) ([]any, error) {
			row := &rows[i]
			values := []any{row.DeviceID, row.Bucket(), row.MeasuredAt}
			for _, m := range roomsensor.Metrics {
				if x, ok := row.Values.Get(m); ok {
					values = append(values, x)
				} else {
					values = append(values, nil)
				}
			}
			return values, nil
		}))
	if err != nil {
		return fmt.Errorf("copying readings: %w", err)
	}
	return nil
}
