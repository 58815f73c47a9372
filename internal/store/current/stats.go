package current

import (
	"context"
	"encoding/binary"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"roomsensor/db"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/teamcache"
)

// teamStats are the statistics of a team's devices that CurrentTeam has read in an hour. A value in the cache never
// changes. It is exact as long as these stay the same:
//
//  1. The source: no other program has written any readings, no chunk was dropped, and it is the same server.
//  2. The version of all readings of the device. A worker changes it in every transaction that changes one of them.
//  3. If that changed, those of the hours before the last one are still exact if the version of late readings is the
//     same and the newest reading was in the last hour: workers have only changed readings of that hour.
//
// A list of devices is read before its statistics. So what was read may be newer than its versions, never older: in the
// worst case it is read once more.
//
// In the next hour, the hours that are in both windows and the hour that has ended are needed. The first of these are
// read before the hour ends, by each team at another time (readNext), because at its end all teams would need them.
type teamStats struct {
	source  readingsSource
	hours   roomsensor.Window
	devices map[uuid.UUID]deviceStats
}

// deviceStats are the statistics of a device, with the versions at which they were read.
type deviceStats struct {
	versions readingVersions
	newest   int64       // the bucket of the newest reading, in microseconds since 1970; 0: none
	current  packedStats // of the last of the hours
	past     packedStats // of the hours before it
	next     packedStats // of the same without the first one, if hasNext
	hasNext  bool
}

const (
	// maxStatsBytes is the limit of the memory of the statistics of all teams, here of 170,000 devices, unless LimitStats
	// sets another one.
	maxStatsBytes = 64 << 20
	// deviceStatsBytes is what the statistics of a device take.
	deviceStatsBytes = 390
	// statsDevices is how many devices have their statistics read in one transaction. On the Apache edition a device has
	// up to 288 readings in the hours. If they are on as many pages, and none of these is in memory, that takes a second.
	statsDevices = 250
)

// statsSnapshot begins a snapshot for statements that aggregate the readings of devices, in one round trip.
var statsSnapshot = pgx.TxOptions{BeginQuery: "begin isolation level repeatable read, read only;\n" + db.StatsSet}

// LimitStats sets the limit of the memory of the statistics, about 390 bytes per device. It must be called before the
// first request. Once the devices whose teams ask regularly need more, most of them are read again each time.
func (s *Store) LimitStats(bytes int) { s.stats = teamcache.NewValues[teamStats](bytes) }

func (t *teamStats) bytes() int { return deviceStatsBytes * (1 + len(t.devices)) }

// of returns what is known of a source and some hours, which may be the next ones. t may be nil.
func (t *teamStats) of(source readingsSource, hours roomsensor.Window) *teamStats {
	if t != nil && t.source.version == source.version && !slices.ContainsFunc(t.source.chunks, source.lacks) &&
		(t.hours == hours || t.hours.To.Add(time.Hour).Equal(hours.To)) {
		return t
	}
	return &teamStats{}
}

// lastHour returns the beginning of the last of some hours.
func lastHour(hours roomsensor.Window) time.Time { return hours.To.Add(-time.Hour) }

// missingStats are statistics of which hours must be read.
type missingStats struct {
	device *roomsensor.CurrentDevice
	read   deviceStats // past has the hours before from
	from   time.Time   // the first hour that must be read
}

// missing returns what must be read of a device in some hours. ok is false if everything is known.
func (t *teamStats) missing(
	d *roomsensor.CurrentDevice, versions readingVersions, hours roomsensor.Window,
) (m missingStats, ok bool) {
	m = missingStats{device: d, read: deviceStats{versions: versions}, from: hours.From}
	if d.Latest != nil {
		m.read.newest = d.Latest.BucketAt.UnixMicro()
	}
	known, exists := t.devices[d.ID]
	sameVersions := known.versions == versions
	samePast := sameVersions || known.versions.late == versions.late && known.newest >= lastHour(t.hours).UnixMicro()
	switch {
	case !exists || !samePast:
	case t.hours != hours:
		if known.hasNext {
			m.read.past, m.from = known.next, lastHour(t.hours)
		}
	case sameVersions:
		m.read = known
		return m, false
	default:
		m.read.past, m.read.next, m.read.hasNext, m.from = known.past, known.next, known.hasNext, lastHour(hours)
	}
	return m, true
}

// addStats adds the statistics of some hours to the devices of a list, and to read. It takes what is known, which must
// be of the same source.
func (s *Store) addStats(ctx context.Context, teamID uuid.UUID, list *currentList, known, read *teamStats) error {
	if read.hours.Empty() {
		return nil
	}
	var missing []missingStats
	keep := func(m *missingStats) {
		read.devices[m.device.ID] = m.read
		m.device.Last24h = m.read.sum()
	}
	for i := range list.devices {
		m, ok := known.missing(&list.devices[i], list.versions[i], read.hours)
		if ok {
			missing = append(missing, m)
		} else {
			keep(&m)
		}
	}
	for part := range slices.Chunk(missing, s.StatsDevices) {
		err := pgx.BeginTxFunc(ctx, s.Pool, statsSnapshot, func(tx pgx.Tx) error {
			return s.readStats(ctx, tx, teamID, part, read.hours)
		})
		if err != nil {
			return err //nolint:wrapcheck // The callers wrap it.
		}
		for i := range part {
			keep(&part[i])
		}
	}
	return nil
}

// readStats reads what is missing of some devices, with a statement for all that lack the same hours.
func (s *Store) readStats(
	ctx context.Context, tx pgx.Tx, teamID uuid.UUID, missing []missingStats, hours roomsensor.Window,
) error {
	byFrom := map[time.Time][]uuid.UUID{}
	for i := range missing {
		byFrom[missing[i].from] = append(byFrom[missing[i].from], missing[i].device.ID)
	}
	for from, ids := range byFrom {
		stats, err := s.readings.HourStats(ctx, tx, teamID, ids, roomsensor.Window{From: from, To: hours.To})
		if err != nil {
			return err
		}
		for i := range missing {
			if m := &missing[i]; m.from.Equal(from) {
				of := stats[m.device.ID]
				m.read.current = packStats(of.Last)
				m.read.past = packStats(m.read.past.stats().Plus(of.Past))
			}
		}
	}
	return nil
}

// nextAt is when a team has hours read for the next hour: between the 5th and the 55th minute of this one.
func nextAt(teamID uuid.UUID, hours roomsensor.Window) time.Time {
	const first, minutes = 5, 50
	minute := first + binary.BigEndian.Uint32(teamID[12:])%minutes
	return lastHour(hours).Add(time.Duration(minute) * time.Minute)
}

// readNext reads the hours that are in the next window, too, of the devices of which they are unknown. It reads a part
// of these devices, so that a request waits for one transaction more at most, and the next request reads others.
func (s *Store) readNext(ctx context.Context, teamID uuid.UUID, read *teamStats) error {
	var ids []uuid.UUID
	for id, of := range read.devices {
		if !of.hasNext && len(ids) < s.StatsDevices {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	return pgx.BeginTxFunc(ctx, s.Pool, statsSnapshot, func(tx pgx.Tx) error { //nolint:wrapcheck // It is not reported.
		stats, err := s.readings.HourStats(ctx, tx, teamID, ids,
			roomsensor.Window{From: read.hours.From.Add(time.Hour), To: lastHour(read.hours)})
		if err != nil {
			return err
		}
		for _, id := range ids {
			of := read.devices[id]
			of.next, of.hasNext = packStats(stats[id].Past.Plus(stats[id].Last)), true
			read.devices[id] = of
		}
		return nil
	})
}

func (d *deviceStats) sum() roomsensor.Stats { return d.current.stats().Plus(d.past.stats()) }

// packedStats are the statistics of at most a day, in which a device has 288 readings.
type packedStats struct {
	sum         [roomsensor.MetricCount]float64
	least, most [roomsensor.MetricCount]float32
	count       [roomsensor.MetricCount]uint16
}

func packStats(stats roomsensor.Stats) (p packedStats) {
	for m, s := range stats {
		p.sum[m], p.least[m], p.most[m], p.count[m] = s.Sum, s.Min, s.Max, uint16(s.Count) //nolint:gosec // At most 288.
	}
	return p
}

func (p *packedStats) stats() (stats roomsensor.Stats) {
	for m := range stats {
		stats[m] = roomsensor.Stat{Min: p.least[m], Max: p.most[m], Sum: p.sum[m], Count: int64(p.count[m])}
	}
	return stats
}
