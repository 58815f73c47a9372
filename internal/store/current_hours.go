package store

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"roomsensor/db"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store/pg"
	"roomsensor/internal/store/readings"
)

// The past hours of a device take 276 readings, which are on as many pages if workers stored a large fleet in the order
// of arrival. So that they are not read in each hour, and by each process after its start, the table current_hours has
// the hours of each device that were read before:
//
//  1. Stored hours are exact as long as the merge_version of the device is the same: all of them end with or before its
//     latest_bucket_at, and workers only added readings after that.
//  2. They are not used when any other program changed readings, or a chunk of the readings was dropped, as in rule 5
//     of keptTeam.
//  3. A change that triggers do not see has no effect on them for a day, until they are in no snapshot any more.
//
// What is stored comes from one snapshot of the database, and its version from the same. Therefore it does not matter
// which of two processes stores the hours of a device last.

// hourSums are the statistics of an hour of a device, as current_hours has them.
type hourSums struct {
	firstChunk, lastChunk uint32 // of its readings; 0 without readings
	sums                  packedStats
}

// hourBytes is the length of an hour in current_hours. Rows of another version of roomsensor must have another length.
const hourBytes = 4 + 4 + roomsensor.MetricCount*(8+4+4+2)

func (h *hourSums) appendTo(row []byte) []byte {
	to := binary.LittleEndian
	row = to.AppendUint32(to.AppendUint32(row, h.firstChunk), h.lastChunk)
	for m := range h.sums.sum {
		row = to.AppendUint64(row, math.Float64bits(h.sums.sum[m]))
		row = to.AppendUint32(row, math.Float32bits(h.sums.least[m]))
		row = to.AppendUint32(row, math.Float32bits(h.sums.most[m]))
		row = to.AppendUint16(row, h.sums.count[m])
	}
	return row
}

// decodeHour is the inverse of appendTo, for hourBytes of a row.
func decodeHour(row []byte) (h hourSums) {
	from := binary.LittleEndian
	h.firstChunk, h.lastChunk = from.Uint32(row), from.Uint32(row[4:])
	row = row[8:]
	for m := range h.sums.sum {
		h.sums.sum[m] = math.Float64frombits(from.Uint64(row))
		h.sums.least[m] = math.Float32frombits(from.Uint32(row[8:]))
		h.sums.most[m] = math.Float32frombits(from.Uint32(row[12:]))
		h.sums.count[m] = from.Uint16(row[16:])
		row = row[18:]
	}
	return h
}

// hoursBetween returns the number of whole hours between two times, which is negative if to is before from.
func hoursBetween(from, to time.Time) int { return int(to.Sub(from) / time.Hour) }

// HourCounts counts past hours of devices that snapshots needed since the start.
type HourCounts struct {
	Stored, Hourly, Read int64 // hours from current_hours, from readings_hourly and from the readings
	NotStored            int64 // devices whose hours could not be stored in current_hours
}

type hourCounters struct{ stored, hourly, read, notStored atomic.Int64 }

// HourCounts returns the numbers of past hours that were needed.
func (s *Store) HourCounts() HourCounts {
	c := &s.hours
	return HourCounts{c.stored.Load(), c.hourly.Load(), c.read.Load(), c.notStored.Load()}
}

// deviceHours are past hours of a device, from the first one on.
type deviceHours struct {
	device *keptDevice
	sums   []hourSums
	stored time.Time // the end of the stored hours
	hourly bool      // whether some are from readings_hourly, which has no chunk of a reading
}

// past returns the aggregate of the hours after some of them.
func (d *deviceHours) past(after int) (stats roomsensor.Stats) {
	for i := range d.sums[after:] {
		stats = stats.Plus(d.sums[after+i].sums.stats())
	}
	return stats
}

// readPastHours reads the past hours of devices of some teams: what is known of them from current_hours, or else the
// hours of readings_hourly that are stored there and equal the readings, and the rest from the readings.
func (r *currentRead) readPastHours(
	ctx context.Context, tx pgx.Tx, teamIDs []uuid.UUID, devices []*keptDevice,
) ([]deviceHours, error) {
	hours, byID := make([]deviceHours, len(devices)), make(map[uuid.UUID]*deviceHours, len(devices))
	for i, d := range devices {
		hours[i].device = d
		byID[d.id] = &hours[i]
	}
	for _, read := range []func(context.Context, pgx.Tx, []uuid.UUID, map[uuid.UUID]*deviceHours) error{
		r.readStoredHours, r.readHourlyHours, r.readOtherHours,
	} {
		if err := read(ctx, tx, teamIDs, byID); err != nil {
			return nil, err
		}
	}
	return hours, nil
}

// readStoredHours takes what current_hours has.
func (r *currentRead) readStoredHours(
	ctx context.Context, tx pgx.Tx, teamIDs []uuid.UUID, hours map[uuid.UUID]*deviceHours,
) error {
	rows, err := r.store.Queries.CurrentHourList(ctx, tx, db.CurrentHourListParams{
		DeviceIds: slices.Collect(maps.Keys(hours)), TeamIds: teamIDs, Writers: r.source.writers,
	})
	for i := range rows {
		d := hours[rows[i].DeviceID]
		if sums := r.usableHours(&rows[i]); len(sums) > 0 {
			d.sums, d.stored = sums, rows[i].HoursTo
			r.store.hours.stored.Add(int64(len(sums)))
		}
	}
	return err
}

// usableHours returns the past hours in a row of current_hours, or nil if the first one is missing or a chunk was
// dropped.
func (r *currentRead) usableHours(row *db.CurrentHourListRow) []hourSums {
	past := pastHours(r.hours)
	count := hoursBetween(row.HoursFrom, row.HoursTo)
	if row.HoursFrom.After(past.From) || !row.HoursTo.After(past.From) || len(row.Sums) != count*hourBytes {
		return nil
	}
	var sums []hourSums
	first := hoursBetween(row.HoursFrom, past.From)
	for i := first; i < min(count, hoursBetween(row.HoursFrom, past.To)); i++ {
		h := decodeHour(row.Sums[i*hourBytes:])
		if r.wasDropped(h.firstChunk) || r.wasDropped(h.lastChunk) {
			return nil
		}
		sums = append(sums, h)
	}
	return sums
}

// wasDropped reports whether a chunk, unless it is 0, does not exist any more.
func (r *currentRead) wasDropped(chunk uint32) bool {
	return chunk != 0 && r.source.lacks(int64(chunk))
}

// readHourlyHours reads hours of the other devices that readings_hourly has stored.
func (r *currentRead) readHourlyHours(
	ctx context.Context, tx pgx.Tx, teamIDs []uuid.UUID, hours map[uuid.UUID]*deviceHours,
) error {
	p := db.HourlyListOfTeamsParams{TeamIds: teamIDs}
	for id, d := range hours {
		if d.sums == nil {
			p.DeviceIds = append(p.DeviceIds, id)
		}
	}
	if len(p.DeviceIds) == 0 {
		return nil
	}
	past := pastHours(r.hours)
	stored, err := r.store.StoredHours(ctx, tx, past)
	if err != nil || stored.Empty() || stored.From != past.From {
		return err
	}
	for _, id := range p.DeviceIds {
		hours[id].sums, hours[id].hourly = make([]hourSums, hoursBetween(stored.From, stored.To)), true
		r.store.hours.hourly.Add(int64(len(hours[id].sums)))
	}
	p.HourFrom, p.HourTo = stored.From, stored.To
	rows, err := tx.Query(ctx, db.HourlyListOfTeams, pg.Positional(p)...)
	if err != nil {
		return err //nolint:wrapcheck // The caller wraps it.
	}
	defer rows.Close()
	for rows.Next() {
		c := rows.RawValues()
		d, stats := hours[uuid.UUID(c[0])], readings.DecodeStats(c[2:])
		if !readings.IsFinite(&stats) { // Only SQL can have inserted such a value, see HourStats.
			d.sums, d.hourly = nil, false
		}
		if d.sums != nil {
			d.sums[hoursBetween(past.From, pg.DecodeTime(c[1]))].sums = packStats(stats)
		}
	}
	return rows.Err()
}

// readOtherHours reads the hours of each device that are still missing.
func (r *currentRead) readOtherHours(
	ctx context.Context, tx pgx.Tx, teamIDs []uuid.UUID, hours map[uuid.UUID]*deviceHours,
) error {
	past := pastHours(r.hours)
	count := hoursBetween(past.From, past.To)
	p := db.ReadingSumByHourParams{TeamIds: teamIDs, WindowFrom: past.To, WindowTo: past.To}
	for id, d := range hours {
		from := past.From.Add(time.Duration(len(d.sums)) * time.Hour)
		if from.Before(past.To) {
			p.DeviceIds, p.HoursFrom = append(p.DeviceIds, id), append(p.HoursFrom, from)
		}
		if from.Before(p.WindowFrom) {
			p.WindowFrom = from
		}
		r.store.hours.read.Add(int64(count - len(d.sums)))
		d.sums = append(d.sums, make([]hourSums, count-len(d.sums))...)
	}
	if len(p.DeviceIds) == 0 {
		return nil
	}
	rows, err := tx.Query(ctx, db.ReadingSumByHour, pg.Positional(p)...)
	if err != nil {
		return err //nolint:wrapcheck // The caller wraps it.
	}
	defer rows.Close()
	for rows.Next() {
		c := rows.RawValues()
		chunk := func(i int) uint32 { return uint32(binary.BigEndian.Uint64(c[i])) } //nolint:gosec // Ids have 32 bits.
		hours[uuid.UUID(c[0])].sums[hoursBetween(past.From, pg.DecodeTime(c[1]))] = hourSums{
			firstChunk: chunk(2), lastChunk: chunk(3), sums: packStats(readings.DecodeStats(c[4:])),
		}
	}
	return rows.Err()
}

// queueHours queues the hours of a device for storeHours if current_hours does not have all of them. These are the
// hours that end with or before the bound of the device, because workers may add readings to later ones.
func (r *currentRead) queueHours(d *deviceHours) {
	past := pastHours(r.hours)
	until := time.UnixMicro(d.device.bound).Add(roomsensor.BucketLength).UTC().Truncate(time.Hour)
	if until.After(past.To) {
		until = past.To
	}
	if d.hourly || d.device.mergeVersion == mergeUnknown || !until.After(past.From) || !until.After(d.stored) {
		return
	}
	var sums []byte
	for i := range hoursBetween(past.From, until) {
		sums = d.sums[i].appendTo(sums)
	}
	p := &r.newHours
	p.DeviceIds, p.MergeVersions = append(p.DeviceIds, d.device.id), append(p.MergeVersions, d.device.mergeVersion)
	p.HoursFrom, p.HoursTo, p.Sums = append(p.HoursFrom, past.From), append(p.HoursTo, until), append(p.Sums, sums)
}

// storeHours stores the queued hours after the read. If that fails, the hours are read again in the next hour.
func (r *currentRead) storeHours(ctx context.Context) {
	if len(r.newHours.DeviceIds) == 0 {
		return
	}
	r.newHours.TeamIds, r.newHours.Writers = r.teamIDs(), r.source.writers
	if err := r.store.Queries.CurrentHourPut(ctx, r.store.Pool, r.newHours); err != nil {
		r.store.hours.notStored.Add(int64(len(r.newHours.DeviceIds)))
	}
}

const (
	// hoursKept is how long after the last stored hour of a device its row is deleted. By then, none of its hours is a
	// past hour.
	hoursKept = 25 * time.Hour
	// hoursPurged is how many rows are deleted at once.
	hoursPurged = 5000
)

// PurgeCurrentHours deletes the hours of devices whose team has not asked for /devices/current for a day, or that sent
// no reading, and returns the number of devices. Any number of processes may call it.
func (s *Store) PurgeCurrentHours(ctx context.Context) (deleted int64, err error) {
	p := db.CurrentHourPurgeParams{HoursBefore: time.Now().Add(-hoursKept), Most: hoursPurged}
	for {
		n, err := s.Queries.CurrentHourPurge(ctx, s.Pool, p)
		deleted += n
		if err != nil {
			return deleted, fmt.Errorf("deleting old sums of hours: %w", pg.Translate(err))
		}
		if n < hoursPurged {
			return deleted, nil
		}
	}
}
