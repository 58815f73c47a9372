package fleet

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"roomsensor/internal/roomsensor"
)

// Verdict counts the readings that are not as they were sent.
type Verdict struct {
	Lost       int64 `json:"lost"`       // readings that a device lacks
	Duplicated int64 `json:"duplicated"` // readings that it has beyond those that it sent
	Wrong      int64 `json:"wrong"`      // devices whose checksum differs, and units without a device
	Readings   int64 `json:"readings"`   // stored
}

// verify compares the count and the checksum of the readings of each device, without its history, with the plan. The
// database sends a row per device, of which none is kept.
func (e *env) verify(ctx context.Context) (v Verdict, err error) {
	e.Logf("comparing the readings of %d devices with what they sent", e.plan.devices)
	conn, err := pgx.Connect(ctx, e.service.DatabaseURL())
	if err != nil {
		return v, fmt.Errorf("connecting to the database: %w", err)
	}
	defer func() { _ = conn.Close(ctx) }()
	// ForEachRow returns the error of Query. Without an index, rows which an index lacks are found too.
	_, err = conn.Exec(ctx, "SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = off")
	if err != nil {
		return v, fmt.Errorf("comparing readings: %w", err)
	}
	rows, _ := conn.Query(ctx, `
		SELECT coalesce(d.hardware_id, ''), coalesce(r.count, 0), coalesce(r.sum, 0)
		FROM devices d FULL JOIN (SELECT device_id, `+sumSQL+` FROM readings
			WHERE bucket_at < $1 OR bucket_at >= $2 GROUP BY device_id) r (device_id, count, sum)
		ON r.device_id = d.id`, e.history().From, e.history().To)
	var hardwareID string
	var found sum
	devices := 0
	_, err = pgx.ForEachRow(rows, []any{&hardwareID, &found.count, &found.check}, func() error {
		devices++
		e.compare(&v, hardwareID, found)
		return nil
	})
	if err != nil {
		return v, fmt.Errorf("comparing readings: %w", err)
	}
	if devices != e.plan.devices {
		e.Unexpected("there are %d devices instead of %d", devices, e.plan.devices)
	}
	return v, e.verifyDerived(ctx, conn, v.Readings)
}

func (e *env) compare(v *Verdict, hardwareID string, found sum) {
	v.Readings += found.count
	var device int
	if n, err := fmt.Sscanf(hardwareID, "dev:9%d", &device); n != 1 || err != nil {
		v.Wrong++ // Readings of a device that does not exist.
		return
	}
	want := e.plan.expected(device)
	switch {
	case found.count < want.count:
		v.Lost += want.count - found.count
	case found.count > want.count:
		v.Duplicated += found.count - want.count
	case found != want:
		v.Wrong++
	}
}

// verifyDerived compares the hourly aggregates with the readings, and checks that nothing was rejected.
func (e *env) verifyDerived(ctx context.Context, conn *pgx.Conn, readings int64) error {
	var hours, rejects int64
	err := conn.QueryRow(ctx, `SELECT coalesce(sum(co2_ppm_count), 0)::bigint, (SELECT count(*) FROM rejected_uploads)
		FROM readings_hourly`).Scan(&hours, &rejects)
	if err != nil {
		return fmt.Errorf("reading the aggregates: %w", err)
	}
	if readings += e.historyReadings(); hours != readings {
		e.Unexpected("the hourly aggregates count %d readings instead of %d", hours, readings)
	}
	if rejects != 0 {
		e.Unexpected("%d uploads were rejected", rejects)
	}
	return nil
}

// historyReadings returns the number of readings before the trial.
func (e *env) historyReadings() int64 {
	return int64(e.options.History/roomsensor.BucketLength) * int64(e.plan.devices)
}
