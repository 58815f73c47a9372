package readings

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"roomsensor/db"
	"roomsensor/internal/fairshare"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/roomsensor/aggregate"
	"roomsensor/internal/store/pg"
)

// countedReadings is how many readings a statement that counts buckets reads at most, unless those of one bucket are
// more. It takes about a second.
const countedReadings = 4_000_000

// AggregateExport is an export of aggregates that was read completely, so that its transaction does not wait for a slow
// client. A line with readings takes up to 80 bytes.
type AggregateExport struct {
	query    aggregate.ExportQuery
	expected []expectedParts // by the rank of the device
	lines    int
	blocks   []*aggregateBlock
}

// OpenAggregates reads the aggregates that a query selects. It returns a TooManyRowsError if there are more than
// MaxExportRows lines. If the query only counts, Each calls nothing.
func (s *Store) OpenAggregates(
	ctx context.Context, teamID uuid.UUID, q aggregate.ExportQuery,
) (aggregate.Export, error) {
	held, err := s.teamExports.Acquire(ctx, fairshare.Owner{Team: teamID}, 1)
	if err != nil {
		return nil, err
	}
	defer held.Release()
	var e *AggregateExport
	read := func(ctx context.Context, conn *pgxpool.Conn) (err error) {
		e, err = s.readAggregates(ctx, conn, teamID, q)
		return err
	}
	served, err := s.OnStandby(ctx, pg.ForExports, read)
	if !served {
		err = s.Exports.AcquireFunc(ctx, func(conn *pgxpool.Conn) error { return read(ctx, conn) })
	}
	if err != nil {
		return nil, fmt.Errorf("exporting aggregates: %w", pg.Translate(err))
	}
	return e, nil
}

// readAggregates reads an export of aggregates from one snapshot.
func (s *Store) readAggregates(
	ctx context.Context, conn *pgxpool.Conn, teamID uuid.UUID, q aggregate.ExportQuery,
) (*AggregateExport, error) {
	e := &AggregateExport{query: q}
	//nolint:wrapcheck // OpenAggregates wraps it.
	return e, pgx.BeginTxFunc(ctx, conn, pg.Snapshot, func(tx pgx.Tx) error {
		err := s.Set(ctx, tx, "statement_timeout", exportStatementTimeout, "plan_cache_mode", "force_custom_plan")
		if err != nil {
			return err
		}
		return e.readLines(ctx, &aggregation{store: s, tx: tx, teamID: teamID, window: q.Window, externalRef: q.ExternalRef})
	})
}

func (e *AggregateExport) readLines(ctx context.Context, a *aggregation) error {
	if err := a.begin(ctx, e.query.Devices, e.query.Now); err != nil {
		return err
	}
	e.query.Devices, e.expected = a.devices, a.expected
	extent, err := e.extent(ctx, a)
	if err != nil || extent.Empty() {
		return err
	}
	most := e.mostLines(extent)
	if most > roomsensor.MaxExportRows || e.query.CountOnly {
		lines, err := e.countLines(ctx, a, extent, most)
		if err != nil {
			return err
		}
		if e.query.CountOnly {
			e.lines = lines
			return nil
		}
	}
	for part := range e.parts(extent, a.store.Limits.AggregateCells) {
		g := a.grid(part.from, part.to, part.buckets)
		if err := g.readCells(ctx); err != nil {
			return err
		}
		block := newAggregateBlock(g, e.query.Metrics)
		e.blocks = append(e.blocks, block)
		e.lines += len(block.lines)
	}
	if e.query.Fill {
		e.lines = most
	}
	return nil
}

// exportPart is a part of an export: the buckets of some consecutive devices in some consecutive buckets. It has all
// devices or one bucket, so that the parts in their order have the order of the lines.
type exportPart struct {
	from, to int // ranks
	buckets  []roomsensor.Window
}

// parts cuts an export into parts of a number of cells.
func (e *AggregateExport) parts(extent roomsensor.Window, cells int) iter.Seq[exportPart] {
	return func(yield func(exportPart) bool) {
		devices := len(e.query.Devices)
		var buckets []roomsensor.Window
		for bucket := range e.query.Calendar.Buckets(extent) {
			buckets = append(buckets, bucket)
			last := !bucket.To.Before(extent.To)
			if !last && (len(buckets)+1)*devices <= cells {
				continue
			}
			for from := 0; from < devices; from += cells {
				if !yield(exportPart{from, min(from+cells, devices), buckets}) {
					return
				}
			}
			buckets = nil
		}
	}
}

// extent returns the part of the window whose buckets can have lines.
func (e *AggregateExport) extent(ctx context.Context, a *aggregation) (roomsensor.Window, error) {
	w := e.query.Window
	if len(a.devices) == 0 || w.Empty() {
		return roomsensor.Window{}, nil
	}
	if e.query.Fill {
		return w, nil
	}
	// The extent of no readings would be null.
	n, err := a.store.Queries.ReadingCount(ctx, a.tx, db.ReadingCountParams{
		DeviceIds: a.devices, TeamID: a.teamID, WindowFrom: w.From, WindowTo: w.To,
		ExternalRef: a.externalRef, Most: 1,
	})
	if err != nil || n == 0 {
		return roomsensor.Window{}, err
	}
	found, err := a.store.Queries.ReadingGetExtent(ctx, a.tx, db.ReadingGetExtentParams{
		DeviceIds: a.devices, TeamID: a.teamID, WindowFrom: w.From, WindowTo: w.To,
	})
	rows := roomsensor.Window{From: found.FirstAt.UTC(), To: found.LastAt.UTC().Add(roomsensor.BucketLength)}
	return w.Intersect(rows), err
}

// mostLines returns how many lines there are at most, which are those of an export that fills. Above ExportCountCap, it
// stops to count.
func (e *AggregateExport) mostLines(extent roomsensor.Window) (lines int) {
	for range e.query.Calendar.Buckets(extent) {
		if lines += len(e.query.Devices); lines > roomsensor.ExportCountCap {
			break
		}
	}
	return lines
}

// countLines counts the lines. It returns a TooManyRowsError if there are too many, whose number is cut to
// ExportCountCap + 1.
func (e *AggregateExport) countLines(
	ctx context.Context, a *aggregation, extent roomsensor.Window, most int,
) (lines int, err error) {
	if lines = most; !e.query.Fill {
		if lines, err = e.countPresent(ctx, a, extent); err != nil {
			return 0, err
		}
	}
	if lines > roomsensor.MaxExportRows {
		return 0, &roomsensor.TooManyRowsError{Rows: min(lines, roomsensor.ExportCountCap+1)}
	}
	return lines, nil
}

// countPresent counts the buckets with readings, and stops above ExportCountCap.
func (e *AggregateExport) countPresent(
	ctx context.Context, a *aggregation, extent roomsensor.Window,
) (lines int, err error) {
	cells := max(1, countedReadings/e.query.Calendar.Bucket(extent.From).Buckets())
	for part := range e.parts(extent, cells) {
		n, err := a.countCells(ctx, part.from, part.to, part.buckets)
		if err != nil {
			return 0, err
		}
		if lines += n; lines > roomsensor.ExportCountCap {
			break
		}
	}
	return lines, nil
}

// countCells counts the buckets in which the devices with some ranks have readings.
func (a *aggregation) countCells(ctx context.Context, from, to int, buckets []roomsensor.Window) (int, error) {
	edges := make([]time.Time, len(buckets))
	for i := range buckets {
		edges[i] = buckets[i].From
	}
	w := a.window.Intersect(roomsensor.Window{From: buckets[0].From, To: buckets[len(buckets)-1].To})
	pieces := a.pieces(buckets, to-from)
	var n int64
	var err error
	if len(pieces) == 1 && pieces[0].hourly {
		n, err = a.store.Queries.HourlyCountBuckets(ctx, a.tx, db.HourlyCountBucketsParams{
			Edges: edges, DeviceIds: a.devices[from:to], TeamID: a.teamID, HourFrom: w.From, HourTo: w.To,
		})
	} else {
		n, err = a.store.Queries.ReadingCountBuckets(ctx, a.tx, db.ReadingCountBucketsParams{
			Edges: edges, DeviceIds: a.devices[from:to], TeamID: a.teamID, WindowFrom: w.From, WindowTo: w.To,
			ExternalRef: a.externalRef,
		})
	}
	return int(n), err
}

// Rows returns the number of lines.
func (e *AggregateExport) Rows() int { return e.lines }

// Each calls do for every line, by bucket_at, then device_id. It stops at the first error of do and returns it. do must
// not keep the row. Each may be called once, because it releases the lines.
func (e *AggregateExport) Each(ctx context.Context, do func(*aggregate.Row) error) error {
	for len(e.blocks) > 0 {
		block := e.blocks[0]
		e.blocks[0], e.blocks = nil, e.blocks[1:]
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("reading an export of aggregates: %w", err)
		}
		if err := e.eachOf(block, do); err != nil {
			return err
		}
	}
	return nil
}

// eachOf calls do for the lines of a block. Lines without readings are not in it.
func (e *AggregateExport) eachOf(block *aggregateBlock, do func(*aggregate.Row) error) error {
	next := 0
	cell := uint32(0)
	for bucket := range e.query.Calendar.Buckets(block.extent) {
		for rank := block.from; rank < block.to; rank++ {
			found := next < len(block.lines) && block.lines[next].cell == cell
			cell++
			if !found && !e.query.Fill {
				continue
			}
			row := aggregate.Row{DeviceID: e.query.Devices[rank]}
			row.Bucket, row.Expected = bucket, e.expected[rank].count(bucket)
			if found {
				row.Present, row.Metrics = block.line(next)
				next++
			}
			if err := do(&row); err != nil {
				return err
			}
		}
	}
	return nil
}

// aggregateBlock holds the lines of a part of an export that have readings.
type aggregateBlock struct {
	from, to int               // ranks
	extent   roomsensor.Window // of its buckets
	metrics  []roomsensor.Metric
	lines    []aggregateLine
	numbers  []float32 // min, max and mean of each metric of each line
	counts   []uint16  // of each metric of each line
}

// aggregateLine is the head of a line. The longest day has 576 5-minute buckets.
type aggregateLine struct {
	cell    uint32 // number by bucket, then device
	present uint16
}

// newAggregateBlock copies the results of a grid.
func newAggregateBlock(g *grid, metrics []roomsensor.Metric) *aggregateBlock {
	n := len(g.tallies) * len(metrics)
	b := &aggregateBlock{
		from: g.first, to: g.first + len(g.ids), extent: g.extent(), metrics: metrics,
		lines: make([]aggregateLine, 0, len(g.tallies)), numbers: make([]float32, 0, 3*n), counts: make([]uint16, 0, n),
	}
	for i, tally := range g.cells {
		if tally == 0 {
			continue
		}
		a := g.aggregate(g.first+i%len(g.ids), i/len(g.ids))
		//nolint:gosec // All of them are small.
		b.lines = append(b.lines, aggregateLine{uint32(i), uint16(a.Present)})
		for _, m := range metrics {
			s := &a.Metrics[m]
			b.numbers = append(b.numbers, s.Min, s.Max, s.Mean)
			b.counts = append(b.counts, uint16(s.Count)) //nolint:gosec // At most present.
		}
	}
	return b
}

// line returns a line.
func (b *aggregateBlock) line(i int) (present int, summaries [roomsensor.MetricCount]roomsensor.Summary) {
	for k, m := range b.metrics {
		at := i*len(b.metrics) + k
		x := b.numbers[3*at : 3*at+3]
		summaries[m] = roomsensor.Summary{Min: x[0], Max: x[1], Mean: x[2], Count: int(b.counts[at])}
	}
	return int(b.lines[i].present), summaries
}
