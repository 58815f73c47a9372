package store

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"roomsensor/db"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store/feed"
	"roomsensor/internal/store/pg"
	"roomsensor/internal/store/write"
)

// recentReadings is how far back the newest reading of a device is searched first. Few chunks are that young, so that
// the search is fast for devices that send. latest_bucket_at tells where to search for the others, because the time to
// plan a query grows with the number of its chunks, and old chunks are locked while they are rewritten.
const recentReadings = 24 * time.Hour

// latestSearch searches the newest readings of devices of some teams in a transaction.
type latestSearch struct {
	store   *Store
	tx      pgx.Tx
	teamIDs []uuid.UUID
	since   time.Time // where searchRecent begins
	found   map[uuid.UUID]*roomsensor.Reading
}

func (s *Store) newLatestSearch(tx pgx.Tx, teamIDs []uuid.UUID, now time.Time) *latestSearch {
	return &latestSearch{s, tx, teamIDs, now.Add(-recentReadings), map[uuid.UUID]*roomsensor.Reading{}}
}

func (l *latestSearch) has(id uuid.UUID) bool { return l.found[id] != nil }

// search keeps the newest reading of each device in a window, unless a newer one is known.
func (l *latestSearch) search(ctx context.Context, window roomsensor.Window, ids []uuid.UUID) error {
	rows, err := l.store.Queries.ReadingLatestList(ctx, l.tx, db.ReadingLatestListParams{
		TeamIds: l.teamIDs, DeviceIds: ids, WindowFrom: window.From, WindowTo: window.To,
	})
	if err != nil {
		return err
	}
	for i := range rows {
		if known := l.found[rows[i].DeviceID]; known == nil || known.BucketAt.Before(rows[i].BucketAt) {
			l.found[rows[i].DeviceID] = latestReading(&rows[i])
		}
	}
	return nil
}

// silentDevices are devices without a recent reading.
type silentDevices struct {
	never   []uuid.UUID // they have no reading, except in the imported ranges
	bounds  []bound
	unknown []uuid.UUID // latest_bucket_at is unknown or too late
}

// searchRecent searches the recent readings of devices, and returns those that have none.
func (l *latestSearch) searchRecent(ctx context.Context, ids []uuid.UUID) (silent silentDevices, err error) {
	if err := l.search(ctx, roomsensor.Window{From: l.since, To: roomsensor.Forever}, ids); err != nil {
		return silent, err
	}
	ids = slices.DeleteFunc(ids, l.has)
	if len(ids) == 0 {
		return silent, nil
	}
	rows, err := l.store.Queries.DeviceLatestList(ctx, l.tx, db.DeviceLatestListParams{TeamIds: l.teamIDs, DeviceIds: ids})
	for i := range rows {
		switch at := rows[i].LatestBucketAt; {
		case at == nil || !at.Before(l.since):
			silent.unknown = append(silent.unknown, rows[i].ID)
		case isNever(*at):
			silent.never = append(silent.never, rows[i].ID)
		default:
			silent.bounds = append(silent.bounds, bound{rows[i].ID, *at})
		}
	}
	return silent, err
}

// searchSilent searches silent devices around latest_bucket_at and in the imported ranges, or in all chunks if
// latest_bucket_at is unknown or too late.
func (l *latestSearch) searchSilent(ctx context.Context, silent silentDevices) error {
	unknown, bounded := silent.unknown, silent.never
	for _, g := range groupBounds(silent.bounds) {
		if err := l.search(ctx, g.window, g.ids); err != nil {
			return err
		}
		for _, id := range g.ids {
			if l.has(id) {
				bounded = append(bounded, id)
			} else {
				unknown = append(unknown, id)
			}
		}
	}
	if len(bounded) > 0 {
		if err := l.searchImported(ctx, l.since, bounded); err != nil {
			return err
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	return l.search(ctx, roomsensor.Window{To: l.since}, unknown)
}

// filter returns those of the devices for which keep is true.
func (s silentDevices) filter(keep func(uuid.UUID) bool) silentDevices {
	var kept silentDevices
	for _, id := range s.never {
		if keep(id) {
			kept.never = append(kept.never, id)
		}
	}
	for _, b := range s.bounds {
		if keep(b.id) {
			kept.bounds = append(kept.bounds, b)
		}
	}
	for _, id := range s.unknown {
		if keep(id) {
			kept.unknown = append(kept.unknown, id)
		}
	}
	return kept
}

// searchImported searches devices before a time where other programs than workers wrote readings, the newest first.
func (l *latestSearch) searchImported(ctx context.Context, before time.Time, ids []uuid.UUID) error {
	ranges, err := l.store.Queries.ForeignRangeList(ctx, l.tx, before)
	if err != nil {
		return err
	}
	for _, window := range slices.Backward(mergeRanges(ranges)) {
		ids = slices.DeleteFunc(ids, func(id uuid.UUID) bool { return l.has(id) && !l.found[id].BucketAt.Before(window.To) })
		if len(ids) == 0 {
			break
		}
		if window.To.After(before) {
			window.To = before
		}
		if err := l.search(ctx, window, ids); err != nil {
			return err
		}
	}
	return nil
}

// mergeRanges merges ranges that overlap or touch. They are in ascending order.
func mergeRanges(ranges []db.ForeignRangeListRow) (windows []roomsensor.Window) {
	for _, r := range ranges {
		if last := len(windows) - 1; last < 0 || r.RangeStart.After(windows[last].To) {
			windows = append(windows, roomsensor.Window{From: r.RangeStart, To: r.RangeEnd})
		} else if r.RangeEnd.After(windows[last].To) {
			windows[last].To = r.RangeEnd
		}
	}
	return windows
}

// bound is latest_bucket_at of a device.
type bound struct {
	id uuid.UUID
	at time.Time
}

// isNever reports whether latest_bucket_at means that a device has no reading.
func isNever(latestBucketAt time.Time) bool { return latestBucketAt.IsZero() }

// boundGroup has the devices whose latest_bucket_at is in a window.
type boundGroup struct {
	window roomsensor.Window
	ids    []uuid.UUID
}

// maxGroupGap is the largest gap between two bounds of a group: a query over both reads few chunks between them.
const maxGroupGap = 7 * 24 * time.Hour

// groupBounds returns groups of bounds that are close together. A query for each group reads only chunks near them.
func groupBounds(bounds []bound) (groups []boundGroup) {
	slices.SortFunc(bounds, func(a, b bound) int { return a.at.Compare(b.at) })
	for i, b := range bounds {
		if i == 0 || b.at.Sub(bounds[i-1].at) > maxGroupGap {
			groups = append(groups, boundGroup{window: roomsensor.Window{From: b.at}})
		}
		last := &groups[len(groups)-1]
		last.window.To = b.at.Add(roomsensor.BucketLength)
		last.ids = append(last.ids, b.id)
	}
	return groups
}

func latestReading(row *db.ReadingLatestListRow) *roomsensor.Reading {
	r := &roomsensor.Reading{BucketAt: row.BucketAt.UTC(), IngestedAt: row.IngestedAt.UTC()}
	for m, x := range [roomsensor.MetricCount]*float32{row.Co2Ppm, row.TempC, row.HumidityPct, row.Lux, row.SplDb} {
		if x != nil {
			r.Values.Set(roomsensor.Metric(m), *x)
		}
	}
	return r
}

const (
	// latestPage is how many devices one call of RefreshLatest checks.
	latestPage = 10_000
	// searchedDevices is how many devices are searched in all chunks in one transaction, which locks them for a moment.
	searchedDevices = 500
	// importedRanges is how many imported ranges are taken at once.
	importedRanges = 1000
)

// RefreshLatest keeps latest_bucket_at of the devices, which bounds the search for their newest readings. It searches
// the imported ranges, and then checks some devices after one: those whose bound is unknown, or whose reading there was
// deleted. It returns how many devices it changed and the last device that it checked, which is uuid.Nil after the last
// one of all. Any number of processes may call it.
func (s *Store) RefreshLatest(ctx context.Context, after uuid.UUID) (changed int, resume uuid.UUID, err error) {
	raised, err := s.searchImports(ctx)
	if err != nil {
		return 0, after, err
	}
	searched, resume, err := s.checkLatest(ctx, after)
	return raised + searched, resume, err
}

// searchImports moves latest_bucket_at forward to imported readings. The ranges are marked once all devices are
// updated, which takes several transactions, so that no device is locked for long.
func (s *Store) searchImports(ctx context.Context) (raised int, err error) {
	err = s.InTx(ctx, "searching imported readings", func(tx pgx.Tx) error {
		taken, err := s.Queries.ForeignRangeTake(ctx, tx, importedRanges)
		if err != nil {
			return err
		}
		ranges := pg.Convert(taken, func(r *db.ForeignRangeTakeRow) db.ForeignRangeListRow {
			return db.ForeignRangeListRow(*r)
		})
		slices.SortFunc(ranges, func(a, b db.ForeignRangeListRow) int { return a.RangeStart.Compare(b.RangeStart) })
		for _, window := range mergeRanges(ranges) {
			n, err := s.raiseLatest(ctx, window)
			raised += n
			if err != nil {
				return err
			}
		}
		return nil
	})
	return raised, err
}

// raiseLatest moves latest_bucket_at forward to the readings in a window.
func (s *Store) raiseLatest(ctx context.Context, window roomsensor.Window) (raised int, err error) {
	p := db.DeviceLatestListBehindParams{WindowFrom: window.From, WindowTo: window.To, Most: searchedDevices}
	for more := true; more; {
		var newest []feed.DeviceBuckets
		err := s.InSnapshot(ctx, "searching imported readings", func(tx pgx.Tx) error {
			rows, err := s.Queries.DeviceLatestListBehind(ctx, tx, p)
			newest = pg.Convert(rows, func(r *db.DeviceLatestListBehindRow) feed.DeviceBuckets {
				return feed.DeviceBuckets{ID: r.DeviceID, First: r.BucketAt, Last: r.BucketAt}
			})
			return err
		})
		if err != nil || len(newest) == 0 {
			return raised, err
		}
		err = s.InTx(ctx, "raising bounds", func(tx pgx.Tx) error {
			var raise pgx.Batch
			write.QueueHeartbeats(&raise, nil, newest)
			return tx.SendBatch(ctx, &raise).Close()
		})
		if err != nil {
			return raised, err
		}
		raised += len(newest)
		p.After = newest[len(newest)-1].ID
		more = len(newest) == searchedDevices
	}
	return raised, nil
}

// checkLatest searches the newest readings of those of the devices after one whose bound is unknown or too late.
func (s *Store) checkLatest(ctx context.Context, after uuid.UUID) (searched int, resume uuid.UUID, err error) {
	rows, err := s.Queries.DeviceLatestPage(ctx, s.Pool, db.DeviceLatestPageParams{After: after, Most: latestPage})
	if err != nil {
		return 0, after, fmt.Errorf("listing devices: %w", pg.Translate(err))
	}
	var wrong []uuid.UUID
	var bounds []bound
	for i := range rows {
		switch at := rows[i].LatestBucketAt; {
		case at == nil:
			wrong = append(wrong, rows[i].ID)
		case !isNever(*at):
			bounds = append(bounds, bound{rows[i].ID, *at})
		}
	}
	err = s.InSnapshot(ctx, "checking the newest readings", func(tx pgx.Tx) error {
		for _, g := range groupBounds(bounds) {
			missing, err := s.Queries.DeviceLatestListMissing(ctx, tx, db.DeviceLatestListMissingParams{
				DeviceIds: g.ids, WindowFrom: g.window.From, WindowTo: g.window.To,
			})
			if err != nil {
				return err
			}
			wrong = append(wrong, missing...)
		}
		return nil
	})
	if err != nil {
		return 0, after, err
	}
	for ids := range slices.Chunk(wrong, searchedDevices) {
		n, err := s.searchLatest(ctx, ids)
		searched += n
		if err != nil {
			return searched, after, err
		}
	}
	if len(rows) < latestPage {
		return searched, uuid.Nil, nil
	}
	return searched, rows[len(rows)-1].ID, nil
}

// searchLatest searches all chunks for the newest readings of some devices. The devices are locked first, so that no
// worker moves latest_bucket_at forward between the search and the update.
func (s *Store) searchLatest(ctx context.Context, ids []uuid.UUID) (searched int, err error) {
	err = s.InTx(ctx, "searching all chunks", func(tx pgx.Tx) error {
		locked, err := s.Queries.DeviceLatestLock(ctx, tx, ids)
		if err != nil || len(locked) == 0 {
			return err
		}
		searched = len(locked)
		return s.Queries.DeviceLatestSearch(ctx, tx, locked)
	})
	return searched, err
}
