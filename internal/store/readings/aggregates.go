package readings

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"roomsensor/db"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/roomsensor/aggregate"
	"roomsensor/internal/store/pg"
)

const (
	// aggregatePart is how many readings a statement of a page of aggregates reads at most, unless those of one bucket are
	// more. A page of 1,000 days takes ten statements.
	aggregatePart = 30_000
	// aggregateStatementTimeout bounds each statement. With Limits.AggregateTime, it is less than the deadline of a
	// request.
	aggregateStatementTimeout = "7s"
)

// DeviceAggregates returns the aggregates of a device in the buckets of a query, in their order, which must be the
// newest first. The result may end early, but has at least one bucket. It returns ErrNotFound if the team does not have
// the device.
func (s *Store) DeviceAggregates(
	ctx context.Context, teamID, deviceID uuid.UUID, q aggregate.Query,
) (list []aggregate.Aggregate, err error) {
	began := time.Now()
	err = s.ReadSnapshot(ctx, "reading aggregates", func(ctx context.Context, tx pgx.Tx) error {
		list = list[:0]
		if err := s.Set(ctx, tx, "statement_timeout", aggregateStatementTimeout); err != nil {
			return err
		}
		a := aggregation{store: s, tx: tx, teamID: teamID, window: q.Window}
		if err := a.begin(ctx, []uuid.UUID{deviceID}, q.Now); err != nil {
			return err
		}
		if len(a.devices) == 0 {
			return roomsensor.ErrNotFound
		}
		for _, part := range newestParts(q.Buckets) {
			if len(list) > 0 && time.Since(began) > s.Limits.AggregateTime {
				return nil
			}
			g := a.grid(0, 1, part)
			if err := g.readCells(ctx); err != nil {
				return err
			}
			for i := range slices.Backward(part) {
				list = append(list, g.aggregate(0, i))
			}
		}
		return nil
	})
	return list, err
}

// newestParts cuts buckets, the newest first, into parts of at most aggregatePart readings. The buckets of each part
// are the oldest first.
func newestParts(buckets []roomsensor.Window) (parts [][]roomsensor.Window) {
	readings := 0
	for _, bucket := range buckets {
		n := bucket.Buckets()
		if len(parts) == 0 || readings+n > aggregatePart {
			parts, readings = append(parts, nil), 0
		}
		readings += n
		last := len(parts) - 1
		parts[last] = append(parts[last], bucket)
	}
	for _, part := range parts {
		slices.Reverse(part)
	}
	return parts
}

// aggregation reads aggregates of some devices in a transaction, which must have one snapshot.
type aggregation struct {
	store       *Store
	tx          pgx.Tx
	teamID      uuid.UUID
	window      roomsensor.Window
	externalRef *string // external_ref of the assignments whose readings count; nil: all readings count

	devices  []uuid.UUID         // ascending
	rank     map[uuid.UUID]int   // of each device in devices
	expected []expectedParts     // by rank
	valid    []roomsensor.Window // the hours that may be read from readings_hourly, ascending
	spare    []aggregate.Tally   // of the last grid, for the next one
}

// begin reads what does not depend on the buckets. Devices that the team does not have are left out.
func (a *aggregation) begin(ctx context.Context, devices []uuid.UUID, now time.Time) error {
	parts, err := a.store.fleet.ExpectedParts(ctx, a.tx, a.teamID, devices, a.externalRef, a.window, now)
	if err != nil {
		return err
	}
	a.rank = make(map[uuid.UUID]int, len(parts))
	for _, id := range devices {
		if expected, ok := parts[id]; ok {
			a.rank[id] = len(a.devices)
			a.devices, a.expected = append(a.devices, id), append(a.expected, expected)
		}
	}
	if a.externalRef != nil {
		return nil // An hour may have readings outside the assignments, so that all are read.
	}
	hours, err := a.store.Queries.HourlyListValid(ctx, a.tx, db.HourlyListValidParams{
		WindowFrom: a.window.From, WindowTo: a.window.To,
	})
	a.valid = pg.Convert(hours, func(row *db.HourlyListValidRow) roomsensor.Window {
		return roomsensor.Window{From: row.HoursFrom.UTC(), To: row.HoursTo.UTC()}
	})
	return err
}

// expectedParts are the expected buckets of a device (A3.3): one window, or one for each of its assignments.
type expectedParts []roomsensor.Window

func (e expectedParts) contains(at time.Time) bool {
	for i := range e {
		if e[i].Contains(at) {
			return true
		}
	}
	return false
}

// count returns the number of expected buckets that start in a window.
func (e expectedParts) count(w roomsensor.Window) (n int) {
	for _, part := range e {
		n += part.Intersect(w).Buckets()
	}
	return n
}

// grid has the tallies of consecutive devices in consecutive buckets.
type grid struct {
	*aggregation
	first   int // rank of the first device
	ids     []uuid.UUID
	buckets []roomsensor.Window // the oldest first
	cells   []int32             // by bucket, then device: the number of the tally, from 1; 0 is none
	tallies []aggregate.Tally
	at      int // the bucket of the last reading: that of the next one is often the same
}

// grid returns an empty grid of the devices with some ranks. It takes the memory of the last grid.
func (a *aggregation) grid(from, to int, buckets []roomsensor.Window) *grid {
	return &grid{
		aggregation: a, first: from, ids: a.devices[from:to], buckets: buckets,
		cells: make([]int32, (to-from)*len(buckets)), tallies: a.spare[:0],
	}
}

// extent returns the part of the window that the buckets have.
func (g *grid) extent() roomsensor.Window {
	return g.window.Intersect(roomsensor.Window{From: g.buckets[0].From, To: g.buckets[len(g.buckets)-1].To})
}

// readCells reads all tallies.
func (g *grid) readCells(ctx context.Context) error {
	var again []devicePart
	for _, part := range g.pieces(g.buckets, len(g.ids)) {
		var err error
		if part.hourly {
			again, err = g.readHours(ctx, part.Window, again)
		} else {
			err = g.readReadings(ctx, part.Window)
		}
		if err != nil {
			return err
		}
	}
	if err := g.readParts(ctx, again); err != nil {
		return err
	}
	err := g.readParts(ctx, g.undecided())
	g.spare = g.tallies
	return err
}

// cell returns the number of the cell of a device in a bucket.
func (g *grid) cell(rank, bucket int) int { return bucket*len(g.ids) + rank - g.first }

// tally returns the tally of a device at a time.
func (g *grid) tally(rank int, at time.Time) *aggregate.Tally {
	if bucket := g.buckets[g.at]; at.Before(bucket.From) || !at.Before(bucket.To) {
		g.at, _ = slices.BinarySearchFunc(g.buckets, at, func(w roomsensor.Window, at time.Time) int {
			switch {
			case !at.Before(w.To):
				return -1
			case at.Before(w.From):
				return 1
			}
			return 0
		})
	}
	cell := &g.cells[g.cell(rank, g.at)]
	if *cell == 0 {
		g.tallies = append(g.tallies, aggregate.Tally{})
		*cell = int32(len(g.tallies)) //nolint:gosec // A grid is small.
	}
	return &g.tallies[*cell-1]
}

// readReadings adds the readings of all devices in a part of the window.
func (g *grid) readReadings(ctx context.Context, w roomsensor.Window) error {
	rows, err := g.tx.Query(ctx, db.ReadingExport, pg.Positional(db.ReadingExportParams{
		DeviceIds: g.ids, TeamID: g.teamID, WindowFrom: w.From, WindowTo: w.To, ExternalRef: g.externalRef,
	})...)
	if err != nil {
		return fmt.Errorf("reading readings: %w", err)
	}
	return g.addReadings(rows)
}

func (g *grid) addReadings(rows pgx.Rows) error {
	defer rows.Close()
	var row roomsensor.ExportRow
	for rows.Next() {
		decodeExportRow(rows, &row)
		rank := g.rank[row.DeviceID]
		g.tally(rank, row.BucketAt).Add(&row.Values, g.expected[rank].contains(row.BucketAt))
	}
	return rows.Err()
}

// readHours adds whole hours of all devices. An hour of which a device has expected and other buckets does not show how
// many of its readings are; it is added to again instead.
func (g *grid) readHours(ctx context.Context, w roomsensor.Window, again []devicePart) ([]devicePart, error) {
	rows, err := g.tx.Query(ctx, db.HourlyList, pg.Positional(db.HourlyListParams{
		DeviceIds: g.ids, TeamID: g.teamID, HourFrom: w.From, HourTo: w.To,
	})...)
	if err != nil {
		return again, fmt.Errorf("reading hours: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		columns := rows.RawValues()
		rank := g.rank[uuid.UUID(columns[0])]
		hour := roomsensor.Window{From: pg.DecodeTime(columns[1])}
		hour.To = hour.From.Add(time.Hour)
		readings, present := decodeCount(columns[2]), 0
		switch g.expected[rank].count(hour) {
		case 0:
		case hour.Buckets():
			present = readings
		default:
			again = append(again, devicePart{rank, hour})
			continue
		}
		stats := DecodeStats(columns[3:])
		g.tally(rank, hour.From).AddHour(&stats, readings, present)
	}
	return again, rows.Err()
}

func decodeCount(column []byte) int {
	return int(binary.BigEndian.Uint64(column)) //nolint:gosec // A count is not negative.
}

// DecodeStats decodes min, max, count and sum of each metric. Adding 0 turns -0 into 0, as in a reading.
func DecodeStats(columns [][]byte) (stats roomsensor.Stats) {
	decode := func(column []byte) float32 { return math.Float32frombits(binary.BigEndian.Uint32(column)) }
	for m := range stats {
		c := columns[4*m:]
		if n := decodeCount(c[2]); n > 0 {
			stats[m] = roomsensor.Stat{
				Min: decode(c[0]) + 0, Max: decode(c[1]) + 0, Count: int64(n),
				Sum: math.Float64frombits(binary.BigEndian.Uint64(c[3])),
			}
		}
	}
	return stats
}

// devicePart is a part of the window of one device.
type devicePart struct {
	rank   int
	window roomsensor.Window
}

// readParts adds the readings of parts of single devices.
func (g *grid) readParts(ctx context.Context, parts []devicePart) error {
	if len(parts) == 0 {
		return nil
	}
	extent := g.extent()
	p := db.ReadingListPartsParams{TeamID: g.teamID, WindowFrom: extent.From, WindowTo: extent.To}
	for _, part := range parts {
		p.DeviceIds = append(p.DeviceIds, g.devices[part.rank])
		p.PartFrom, p.PartTo = append(p.PartFrom, part.window.From), append(p.PartTo, part.window.To)
	}
	rows, err := g.tx.Query(ctx, db.ReadingListParts, pg.Positional(p)...)
	if err != nil {
		return fmt.Errorf("reading parts: %w", err)
	}
	return g.addReadings(rows)
}

// undecided resets the tallies that hours do not determine, and returns their parts of the window.
func (g *grid) undecided() (parts []devicePart) {
	for i, n := range g.cells {
		if n == 0 {
			continue
		}
		tally := &g.tallies[n-1]
		if _, ok := tally.Aggregate(roomsensor.Window{}, 0); ok {
			continue
		}
		*tally = aggregate.Tally{}
		rank, bucket := g.first+i%len(g.ids), i/len(g.ids)
		parts = append(parts, devicePart{rank, g.window.Intersect(g.buckets[bucket])})
	}
	return parts
}

// aggregate returns the result of a device in a bucket.
func (g *grid) aggregate(rank, bucket int) aggregate.Aggregate {
	var tally aggregate.Tally
	if n := g.cells[g.cell(rank, bucket)]; n > 0 {
		tally = g.tallies[n-1]
	}
	expected := g.expected[rank].count(g.buckets[bucket])
	result, _ := tally.Aggregate(g.buckets[bucket], expected) // readCells has decided it.
	return result
}
