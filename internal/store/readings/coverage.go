package readings

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"roomsensor/db"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/roomsensor/completeness"
	"roomsensor/internal/store/fleet"
	"roomsensor/internal/store/pg"
)

// coverageGrowth is how many times as much as the one before a statement of coverage reads.
const coverageGrowth = 5

// coverageStatementTimeout bounds each statement of coverage. With Limits.CoverageTime, it is less than the deadline of
// a request.
const coverageStatementTimeout = "7s"

// EachCoverage calls do for the coverage of every device of a page, by id, until it returns false (A3). more reports
// whether there are devices after the page, which may have fewer than q.Limit, at least one.
func (s *Store) EachCoverage(
	ctx context.Context, teamID uuid.UUID, q completeness.CoverageQuery, do func(*completeness.DeviceCoverage) bool,
) (more bool, err error) {
	filter, ok := fleet.MetadataFilter(q.Metadata)
	if !ok {
		return false, nil
	}
	c := coverageReader{store: s, teamID: teamID, query: q, began: time.Now()}
	perDevice := max(1, completeness.Expected(q.Window, nil, q.Now).Buckets())
	c.query.Limit = min(q.Limit, max(1, s.Limits.CoveragePage/perDevice))
	err = s.ReadSnapshot(ctx, "reading coverage", func(ctx context.Context, tx pgx.Tx) error {
		if err := s.Set(ctx, tx, "statement_timeout", coverageStatementTimeout); err != nil {
			return err
		}
		devices, err := s.Queries.DeviceStateList(ctx, tx, db.DeviceStateListParams{
			TeamID: teamID, Metadata: filter, After: c.query.After, Most: int64(c.query.Limit) + 1,
			ExternalRef: q.ExternalRef, WindowFrom: q.Window.From, WindowTo: q.Window.To,
		})
		if err != nil {
			return err
		}
		more = len(devices) > c.query.Limit
		devices = devices[:min(len(devices), c.query.Limit)]
		read, err := c.read(ctx, tx, devices, max(1, s.Limits.CoverageStatement/perDevice), do)
		more = more || read < len(devices)
		return err
	})
	return more, err
}

// coverageReader reads a page of coverage in a transaction.
type coverageReader struct {
	store  *Store
	teamID uuid.UUID
	query  completeness.CoverageQuery
	began  time.Time
}

// read reads some devices, until do returns false or the time is over, and returns how many it has read. part is how
// many the first statement reads. The query continues after them.
func (c *coverageReader) read(
	ctx context.Context, tx pgx.Tx, devices []db.DeviceStateListRow, part int, do func(*completeness.DeviceCoverage) bool,
) (read int, err error) {
	for ; read < len(devices); part *= coverageGrowth {
		if read > 0 && time.Since(c.began) > c.store.Limits.CoverageTime {
			break
		}
		rows := devices[read:min(read+part, len(devices))]
		counts, err := c.count(ctx, tx, rows)
		if err != nil {
			return read, err
		}
		for i := range rows {
			read++
			c.query.After, c.query.Limit = &rows[i].ID, c.query.Limit-1
			if !do(deviceCoverage(&rows[i], counts[rows[i].ID].Coverage())) {
				return read, nil
			}
		}
	}
	return read, nil
}

// count counts the readings of some devices.
func (c *coverageReader) count(
	ctx context.Context, tx pgx.Tx, devices []db.DeviceStateListRow,
) (map[uuid.UUID]*completeness.CoverageCount, error) {
	ids := make([]uuid.UUID, len(devices))
	for i := range devices {
		ids[i] = devices[i].ID
	}
	parts, err := c.store.fleet.ExpectedParts(ctx, tx, c.teamID, ids, c.query.ExternalRef, c.query.Window, c.query.Now)
	if err != nil {
		return nil, err
	}
	counts := make(map[uuid.UUID]*completeness.CoverageCount, len(ids))
	for _, id := range ids {
		counts[id] = completeness.NewCoverageCount(parts[id]...)
	}
	w := completeness.Expected(c.query.Window, nil, c.query.Now)
	if w.Empty() {
		return counts, nil
	}
	rows, err := tx.Query(ctx, db.ReadingMaskList, pg.Positional(db.ReadingMaskListParams{
		DeviceIds: ids, TeamID: c.teamID, WindowFrom: w.From, WindowTo: w.To, ExternalRef: c.query.ExternalRef,
	})...)
	if err != nil {
		return nil, err //nolint:wrapcheck // InSnapshot wraps it.
	}
	defer rows.Close()
	for rows.Next() {
		columns := rows.RawValues()
		counts[uuid.UUID(columns[0])].Add(pg.DecodeTime(columns[1]), columns[2][1]) // The low byte of a smallint.
	}
	return counts, rows.Err()
}

func deviceCoverage(row *db.DeviceStateListRow, c completeness.Coverage) *completeness.DeviceCoverage {
	d := &completeness.DeviceCoverage{
		Coverage: c, ID: row.ID, DisplayName: row.DisplayName, LastSeenAt: row.LastSeenAt,
	}
	if row.AssignmentID != nil {
		d.ActiveAssignment = &roomsensor.Assignment{
			ID: *row.AssignmentID, DeviceID: row.ID, Label: *row.Label,
			StartedAt: row.StartedAt.UTC(), ExternalRef: row.ExternalRef,
		}
	}
	return d
}

// EachGap calls do for the gaps of a device, the newest first, until it returns false (A4). If a page has to end
// because it read many readings, it returns where: the next page continues with the buckets before. It returns
// ErrNotFound if the team does not have the device.
func (s *Store) EachGap(
	ctx context.Context, teamID, deviceID uuid.UUID, q completeness.GapQuery, do func(*roomsensor.Window) bool,
) (end *time.Time, err error) {
	search, err := s.searchGaps(ctx, teamID, deviceID, q)
	if err != nil {
		return nil, err
	}
	take := func(gap roomsensor.Window, ok bool) bool {
		return !ok || gap.To.Sub(gap.From) < q.Min || do(&gap)
	}
	for read := 0; read < s.Limits.GapPage; read += s.Limits.GapStatement {
		if done, err := s.readGaps(ctx, teamID, deviceID, search, take); err != nil || done {
			return nil, err
		}
	}
	return new(search.Rest().To), nil
}

// readGaps reads some buckets and passes the gaps between them to take. done is set after the last gap of the search,
// or once take has returned false.
func (s *Store) readGaps(
	ctx context.Context, teamID, deviceID uuid.UUID, search *completeness.GapSearch,
	take func(gap roomsensor.Window, ok bool) bool,
) (done bool, err error) {
	var buckets []time.Time
	err = s.ReadAnywhere(ctx, func(ctx context.Context, from pg.Reader) (err error) {
		buckets, err = s.Queries.ReadingBucketList(ctx, from, db.ReadingBucketListParams{
			DeviceID: deviceID, TeamID: teamID, WindowFrom: search.Rest().From, WindowTo: search.Rest().To,
			Most: int64(s.Limits.GapStatement),
		})
		return err
	})
	if err != nil {
		return false, fmt.Errorf("reading buckets: %w", pg.Translate(err))
	}
	for _, at := range buckets {
		if !take(search.Reading(at.UTC())) {
			return true, nil
		}
	}
	if done = len(buckets) < s.Limits.GapStatement; done {
		take(search.End())
	}
	return done, nil
}

// searchGaps begins the search of a page.
func (s *Store) searchGaps(
	ctx context.Context, teamID, deviceID uuid.UUID, q completeness.GapQuery,
) (*completeness.GapSearch, error) {
	var units map[uuid.UUID][]roomsensor.Installation
	err := s.ReadAnywhere(ctx, func(ctx context.Context, from pg.Reader) (err error) {
		units, err = s.fleet.DeviceUnits(ctx, from, teamID, []uuid.UUID{deviceID})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("listing installations: %w", pg.Translate(err))
	}
	if len(units) == 0 {
		return nil, roomsensor.ErrNotFound
	}
	expected := completeness.Expected(q.Window, units[deviceID], q.Now)
	if q.Before != nil && q.Before.Before(expected.To) {
		expected.To = *q.Before
	}
	return completeness.NewGapSearch(expected), nil
}
