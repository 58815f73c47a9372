package cluster

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"roomsensor/client"
	"roomsensor/internal/retry"
	"roomsensor/internal/roomsensor"
	"roomsensor/test/harness"
)

const (
	archiveDevices       = 24
	archiveRowsPerDevice = 10_000
	// archiveRows give an export of about 25 MB. That is more than the buffers between a process and its client hold, so
	// that the export cannot finish while the client does not read.
	archiveRows = archiveDevices * archiveRowsPerDevice
)

// archive is a team with a long history, which is inserted by SQL, for exports that take a while.
type archive struct {
	key  string
	from time.Time
	to   time.Time
}

func (e *env) createArchive(ctx context.Context) error {
	devices := make([]harness.Device, archiveDevices)
	for i := range devices {
		devices[i] = harness.Device{
			ID: uuid.New(), HardwareID: fmt.Sprintf("dev:777%d", i), Name: fmt.Sprintf("Archive %d", i),
		}
		e.fleet.Excluded = append(e.fleet.Excluded, devices[i].ID)
	}
	to := e.fleet.Now.Truncate(roomsensor.BucketLength)
	e.archive = &archive{from: to.Add(-archiveRowsPerDevice * roomsensor.BucketLength), to: to}
	return e.service.Query(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		team, err := harness.InsertTeam(ctx, conn, "Archive", devices)
		if err != nil {
			return err
		}
		keys, err := harness.InsertAPIKeys(ctx, conn, team, 1)
		if err != nil {
			return err
		}
		e.archive.key = keys[0]
		return e.fillArchive(ctx, conn)
	})
}

func (e *env) fillArchive(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, `
		INSERT INTO readings (device_id, bucket_at, co2_ppm, temp_c, humidity_pct, lux, spl_db, measured_at)
		SELECT d, b, 400 + n % 997, 15 + n % 171 / 10.0, 30 + n % 41, n % 1009, 30 + n % 499 / 10.0, b
		FROM unnest($1::uuid[]) d,
		     generate_series($2::timestamptz, $3::timestamptz - interval '5 min', interval '5 min')
		     WITH ORDINALITY s (b, n)`,
		e.fleet.Excluded, e.archive.from, e.archive.to)
	if err != nil {
		return fmt.Errorf("filling the archive: %w", err)
	}
	return nil
}

// open requests an export of the whole archive on a connection of its own. The caller closes it.
func (a *archive) open(ctx context.Context, api string) (*client.Export, error) {
	c, err := harness.NewClient(api, a.key, client.WithMaxAttempts(1))
	if err != nil {
		return nil, err
	}
	return c.ExportCSV(ctx, client.ExportQuery{Window: client.Between(a.from, a.to)})
}

// countRows reads an export to its end and counts the rows after the header.
func countRows(export io.Reader) (n int, err error) {
	lines := bufio.NewReader(export)
	for {
		_, err := lines.ReadSlice('\n')
		if errors.Is(err, io.EOF) {
			return n - 1, nil
		}
		if err != nil {
			return n - 1, err //nolint:wrapcheck // Wrapped by the callers.
		}
		n++
	}
}

// check reads the whole archive once.
func (a *archive) check(ctx context.Context, api string) error {
	export, err := a.open(ctx, api)
	if err != nil {
		return err
	}
	defer func() { _ = export.Close() }()
	n, err := countRows(export)
	if err == nil && n != archiveRows {
		err = fmt.Errorf("an export ended without an error after %d of %d rows", n, archiveRows)
	}
	return err
}

var errNotBroken = errors.New("an export ended without an error although its process was killed")

// killDuringExport kills the process that sends an export. The client must get an error, and its next request to the
// same address must succeed.
func (f *faults) killDuringExport(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, recoveryTimeout)
	defer cancel()
	export, err := f.archive.open(ctx, f.service.API)
	if err != nil {
		return fmt.Errorf("requesting an export: %w", err)
	}
	defer func() { _ = export.Close() }()
	if _, err := export.Read(make([]byte, 1)); err != nil {
		return fmt.Errorf("reading the first byte of an export: %w", err)
	}
	victim := f.apis.backendOf(export.Header)
	if victim == nil {
		return errNoBackend
	}
	f.begin(victim.member.member)
	if err := victim.member.kill(ctx); err != nil {
		return err
	}
	n, err := countRows(export)
	if err == nil {
		return fmt.Errorf("%w: %d rows", errNotBroken, n)
	}
	f.Logf("the export ended after %d of %d rows: %v", n, archiveRows, err)
	began := time.Now()
	if err := f.archive.check(ctx, f.service.API); err != nil {
		return fmt.Errorf("requesting the export again: %w", err)
	}
	f.note("retry took %.1f s", time.Since(began).Seconds())
	if err := retry.Sleep(ctx, f.options.Down); err != nil {
		return err
	}
	return victim.member.restart(ctx)
}
