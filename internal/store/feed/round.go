package feed

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"roomsensor/db"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store/fleet"
	"roomsensor/internal/store/pg"
)

const (
	// feedDevices is the most devices of one statement.
	feedDevices = 1000
	// feedListed is the most devices in feed_batches for which a round reads them. From then on it is faster to look at
	// the days of all devices of the team.
	feedListed = 200_000
)

// EachChange calls do with the readings of a round of a team's change feed after a position, until do returns false. It
// returns how far the round was read. It may stop earlier, so that a request does not last long. do must not keep the
// reading, which is reused. If the cursor is ahead of the database, the error is cursor_invalid.
func (s *Store) EachChange(
	ctx context.Context, teamID uuid.UUID, q roomsensor.FeedQuery, do func(*roomsensor.Change) bool,
) (progress roomsensor.FeedProgress, err error) {
	filter, ok := fleet.MetadataFilter(q.Metadata)
	if !ok {
		return roomsensor.FeedProgress{Done: true}, nil
	}
	r := &feedRound{store: s, teamID: teamID, query: q, filter: filter, do: do, began: time.Now(), taken: q.After}
	err = s.ReadSnapshot(ctx, "reading changes", func(ctx context.Context, tx pgx.Tx) error {
		r.tx = tx
		if r.count == 0 { // It may run twice: a standby can fail in the middle.
			r.deleted, r.until, r.query.Round = nil, time.Time{}, q.Round
			if err := r.readDeletions(ctx); err != nil {
				return err
			}
		}
		done, err := r.read(ctx)
		progress = roomsensor.FeedProgress{After: r.taken, Done: done, Deleted: r.deleted, Until: r.until}
		return err
	})
	return progress, err
}

// feedRound reads a round in a transaction.
type feedRound struct {
	store  *Store
	tx     pgx.Tx
	teamID uuid.UUID
	query  roomsensor.FeedQuery
	filter []byte // the tags as JSON
	do     func(*roomsensor.Change) bool
	began  time.Time

	lateIn, lateOut []time.Time // ingested_at of late readings that belong to the round, and of those that do not
	taken           *roomsensor.FeedPosition
	count           int // readings taken
	deleted         []roomsensor.ReadingDeletion
	until           time.Time // the end of the round, if it is not that of the query
}

// feedSpan is a span in which the round may have readings: of some devices, or of all in a part of the span.
type feedSpan struct {
	span    roomsensor.Window
	devices []DeviceBuckets // by id; nil means all
	all     DeviceBuckets   // first and last bucket of all devices
}

// DeviceBuckets are buckets of a device, from the first to the last.
type DeviceBuckets struct {
	ID          uuid.UUID
	First, Last time.Time
}

// widen includes other buckets. The zero DeviceBuckets has none.
func (b *DeviceBuckets) widen(first, last time.Time) {
	if b.First.IsZero() || first.Before(b.First) {
		b.First = first
	}
	if b.Last.IsZero() || last.After(b.Last) {
		b.Last = last
	}
}

// count returns the number of buckets.
func (b *DeviceBuckets) count() int {
	return int(max(0, b.Last.Sub(b.First)/roomsensor.BucketLength+1))
}

// read reads the spans of the round in their order, and reports whether it read all.
func (r *feedRound) read(ctx context.Context) (done bool, err error) {
	if err := r.readLate(ctx); err != nil {
		return false, err
	}
	spans, err := r.spans(ctx)
	if err != nil {
		return false, err
	}
	for i := range spans {
		if r.taken != nil && !r.taken.BucketAt.Before(spans[i].span.To) {
			continue
		}
		if done, err := r.readSpan(ctx, &spans[i]); !done || err != nil {
			return false, err
		}
	}
	return true, nil
}

// readDeletions reads the deletions at the start of a round. If there are more than the query allows, the round ends at
// the time of the next one: a team has one deletion per time.
func (r *feedRound) readDeletions(ctx context.Context) error {
	round := r.query.Round
	if r.query.Deletions == 0 || r.query.After != nil || round.Empty() {
		return nil
	}
	rows, err := r.store.Queries.FeedDeletionList(ctx, r.tx, db.FeedDeletionListParams{
		TeamID: r.teamID, FromAt: round.From, ToAt: round.To, Metadata: r.filter,
		EveryDevice: r.query.Devices == nil, DeviceIds: r.query.Devices, ExternalRef: r.query.ExternalRef,
		Most: int64(r.query.Deletions + 1),
	})
	for i := range rows {
		row := &rows[i]
		if i == r.query.Deletions {
			r.until = row.EffectiveAt.UTC()
			r.query.Round.To = r.until
			break
		}
		r.deleted = append(r.deleted, roomsensor.ReadingDeletion{
			Window:   roomsensor.Window{From: row.DeletedFrom.UTC(), To: row.DeletedTo.UTC()},
			DeviceID: row.DeviceID, DeletedAt: row.EffectiveAt.UTC(),
		})
	}
	return err
}

// readLate reads which times of readings stand for other times in the feed.
func (r *feedRound) readLate(ctx context.Context) error {
	r.lateIn, r.lateOut = []time.Time{}, []time.Time{}
	late, err := r.store.Queries.FeedLateList(ctx, r.tx, r.query.Round.From)
	for _, l := range late {
		if l.EffectiveAt.Before(r.query.Round.To) {
			r.lateIn = append(r.lateIn, l.IngestedAt)
		} else {
			r.lateOut = append(r.lateOut, l.IngestedAt)
		}
	}
	return err
}

// spans returns where the round may have readings, in order.
func (r *feedRound) spans(ctx context.Context) ([]feedSpan, error) {
	round := r.query.Round
	state, err := r.store.Queries.FeedStateGet(ctx, r.tx,
		db.FeedStateGetParams{TeamID: r.teamID, FromAt: round.From, ToAt: round.To, CursorAt: r.query.Cursor})
	if err != nil {
		return nil, err
	}
	if state.Ahead {
		return nil, roomsensor.NewError(roomsensor.CodeCursorInvalid, "cursor", "The service was restored from a backup "+
			"that is older than this cursor, so your copy may have readings that the service lacks. "+
			"To start again, note the time, replace your copy by an export with GET /readings.csv, "+
			"and then request /readings/changes without a cursor and with that time as since.")
	}
	m := spanMap{}
	switch {
	case !round.From.Before(state.BatchesSince) && state.Devices <= feedListed:
		err = r.addBatches(ctx, m)
	case !round.From.Before(state.DaysSince):
		err = r.addDays(ctx, m)
	default:
		err = r.addChunks(ctx, m)
	}
	return m.sorted(), err
}

// addBatches adds the buckets in feed_batches.
func (r *feedRound) addBatches(ctx context.Context, m spanMap) error {
	round := r.query.Round
	listed, err := r.store.Queries.FeedDeviceList(ctx, r.tx, db.FeedDeviceListParams{
		FromAt: round.From, ToAt: round.To, TeamID: r.teamID, Metadata: r.filter,
		EveryDevice: r.query.Devices == nil, DeviceIds: r.query.Devices,
	})
	if err != nil {
		return err
	}
	for _, d := range listed {
		m.addDevice(d.DeviceID, d.FirstAt, d.LastAt)
	}
	ranges, err := r.store.Queries.FeedRangeList(ctx, r.tx, db.FeedRangeListParams{FromAt: round.From, ToAt: round.To})
	for _, c := range ranges {
		m.addAll(c.FirstAt, c.LastAt)
	}
	return err
}

// addDays adds the days in feed_days, and those in feed_batches.
func (r *feedRound) addDays(ctx context.Context, m spanMap) error {
	round := r.query.Round
	days, err := r.store.Queries.FeedDayList(ctx, r.tx, db.FeedDayListParams{
		TeamID: r.teamID, FromHour: round.From.Truncate(time.Hour), FromAt: round.From, ToAt: round.To,
	})
	for _, day := range days {
		m.addAll(day, day.Add(24*time.Hour-roomsensor.BucketLength))
	}
	return err
}

// addChunks adds all chunks.
func (r *feedRound) addChunks(ctx context.Context, m spanMap) error {
	chunks, err := r.store.Queries.ChunkListRanges(ctx, r.tx)
	if err != nil {
		return err
	}
	for i, from := range chunks.RangeStarts {
		m.addAll(from, chunks.RangeEnds[i].Add(-roomsensor.BucketLength))
	}
	return nil
}

// spanMap collects buckets by the start of their span in seconds since 1970.
type spanMap map[int64]*spanBuckets

type spanBuckets struct {
	span    roomsensor.Window
	devices map[uuid.UUID]*DeviceBuckets
	all     *DeviceBuckets
}

// inSpans calls do for the part of an interval of buckets in each of its spans.
func (m spanMap) inSpans(first, last time.Time, do func(s *spanBuckets, first, last time.Time)) {
	for !first.After(last) {
		span := roomsensor.FeedSpan(first)
		s := m[span.From.Unix()]
		if s == nil {
			s = &spanBuckets{span: span, devices: map[uuid.UUID]*DeviceBuckets{}}
			m[span.From.Unix()] = s
		}
		end := span.To.Add(-roomsensor.BucketLength)
		if last.Before(end) {
			end = last
		}
		do(s, first, end)
		first = span.To
	}
}

// addDevice adds buckets of a device, addAll buckets of all devices.
func (m spanMap) addDevice(id uuid.UUID, first, last time.Time) {
	m.inSpans(first.UTC(), last.UTC(), func(s *spanBuckets, first, last time.Time) {
		d := s.devices[id]
		if d == nil {
			d = &DeviceBuckets{ID: id}
			s.devices[id] = d
		}
		d.widen(first, last)
	})
}

func (m spanMap) addAll(first, last time.Time) {
	m.inSpans(first.UTC(), last.UTC(), func(s *spanBuckets, first, last time.Time) {
		if s.all == nil {
			s.all = &DeviceBuckets{}
		}
		s.all.widen(first, last)
	})
}

// sorted returns the spans in order. If all devices may have changed in a span, it has the buckets of all.
func (m spanMap) sorted() (spans []feedSpan) {
	for _, second := range slices.Sorted(maps.Keys(m)) {
		s := m[second]
		span := feedSpan{span: s.span}
		for _, d := range s.devices {
			if s.all != nil {
				s.all.widen(d.First, d.Last)
			}
			span.devices = append(span.devices, *d)
		}
		if s.all != nil {
			span.devices, span.all = nil, *s.all
		}
		slices.SortFunc(span.devices, func(a, b DeviceBuckets) int { return bytes.Compare(a.ID[:], b.ID[:]) })
		spans = append(spans, span)
	}
	return spans
}

// readSpan reads a span after the position, and reports whether it read all of it.
func (r *feedRound) readSpan(ctx context.Context, s *feedSpan) (done bool, err error) {
	for {
		batch, err := r.nextDevices(ctx, s)
		if err != nil || len(batch) == 0 {
			return err == nil, err
		}
		if done, err := r.readDevices(ctx, s.span, batch); !done || err != nil {
			return false, err
		}
		// All readings of these devices were read, up to the end of the span.
		r.taken = &roomsensor.FeedPosition{
			DeviceID: batch[len(batch)-1].ID, BucketAt: s.span.To.Add(-roomsensor.BucketLength),
		}
		if time.Since(r.began) > r.store.Limits.Time {
			return false, nil
		}
	}
}

// nextDevices returns devices of a span from the position on, with the buckets to look at: as many as one statement
// takes.
func (r *feedRound) nextDevices(ctx context.Context, s *feedSpan) (batch []DeviceBuckets, err error) {
	var from uuid.UUID
	first := s.span.From // of the device at the position
	if r.taken != nil && !r.taken.BucketAt.Before(s.span.From) {
		from, first = r.taken.DeviceID, r.taken.BucketAt.Add(roomsensor.BucketLength)
	}
	listed := s.devices
	if listed == nil {
		if listed, err = r.filterDevices(ctx, s, from); err != nil {
			return nil, err
		}
	}
	candidates := 0
	for _, d := range listed {
		if bytes.Compare(d.ID[:], from[:]) < 0 {
			continue
		}
		if d.ID == from && first.After(d.First) {
			d.First = first
		}
		if d.count() == 0 {
			continue
		}
		if candidates += d.count(); len(batch) > 0 && candidates > r.store.Limits.Candidates || len(batch) == feedDevices {
			break
		}
		batch = append(batch, d)
	}
	return batch, nil
}

// filterDevices returns devices of the team from an id on, all with the buckets of a span.
func (r *feedRound) filterDevices(ctx context.Context, s *feedSpan, from uuid.UUID) ([]DeviceBuckets, error) {
	most := min(r.store.Limits.Candidates/s.all.count()+1, feedDevices)
	ids, err := r.store.Queries.FeedFilterList(ctx, r.tx, db.FeedFilterListParams{
		TeamID: r.teamID, FromID: from, Metadata: r.filter,
		EveryDevice: r.query.Devices == nil, DeviceIds: r.query.Devices,
		Most: int64(most + 1), // The first one may be complete already.
	})
	listed := make([]DeviceBuckets, len(ids))
	for i, id := range ids {
		listed[i] = DeviceBuckets{id, s.all.First, s.all.Last}
	}
	return listed, err
}

// readDevices reads the readings of some devices, and reports whether it read all of them.
func (r *feedRound) readDevices(ctx context.Context, span roomsensor.Window, batch []DeviceBuckets) (bool, error) {
	p := db.FeedReadingListParams{
		WindowFrom: span.To, WindowTo: span.From, FromAt: r.query.Round.From, ToAt: r.query.Round.To,
		LateIn: r.lateIn, LateOut: r.lateOut, TeamID: r.teamID, ExternalRef: r.query.ExternalRef,
		Most: int64(max(1, r.query.Most-r.count)),
	}
	for i := range batch {
		d := &batch[i]
		p.DeviceIds, p.FirstAt, p.LastAt = append(p.DeviceIds, d.ID), append(p.FirstAt, d.First), append(p.LastAt, d.Last)
		p.WindowFrom = roomsensor.Earlier(p.WindowFrom, d.First)
		p.WindowTo = roomsensor.Later(p.WindowTo, d.Last.Add(roomsensor.BucketLength))
	}
	rows, err := r.tx.Query(ctx, db.FeedReadingList, pg.Positional(p)...)
	if err != nil {
		return false, err //nolint:wrapcheck // EachChange wraps it.
	}
	defer rows.Close()
	var read int64
	var change roomsensor.Change
	for rows.Next() {
		change = decodeChange(rows)
		if !r.do(&change) {
			return false, nil
		}
		read++
		r.count++
		r.taken = &roomsensor.FeedPosition{DeviceID: change.DeviceID, BucketAt: change.BucketAt}
	}
	return read < p.Most, rows.Err()
}

// decodeChange decodes a row of FeedReadingList.
func decodeChange(rows pgx.Rows) roomsensor.Change {
	c := rows.RawValues()
	return roomsensor.Change{
		DeviceID: uuid.UUID(c[0]),
		Reading: roomsensor.Reading{
			BucketAt:   pg.DecodeTime(c[1]),
			Values:     pg.DecodeValues(c[2 : 2+roomsensor.MetricCount]),
			IngestedAt: pg.DecodeTime(c[2+roomsensor.MetricCount]),
		},
	}
}
