package current

import (
	"context"
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
//  3. If that changed, those of the past hours are still exact if the version of late readings is the same and the
//     newest reading was in the current hour: workers have only changed readings of that hour.
//
// A list of devices is read before its statistics. So what was read may be newer than its versions, never older: in the
// worst case it is read once more.
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
	past     packedStats // of the other hours
}

const (
	// maxStatsBytes is the limit of the memory of the statistics of all teams, here of 240,000 devices, unless LimitStats
	// sets another one.
	maxStatsBytes = 64 << 20
	// deviceStatsBytes is what the statistics of a device take.
	deviceStatsBytes = 280
	// statsDevices is how many devices have their statistics read in one transaction. On the Apache edition a device has
	// up to 288 readings in the hours. If they are on as many pages, and none of these is in memory, that takes a second.
	statsDevices = 250
)

// statsSnapshot begins a snapshot for statements that aggregate the readings of devices, in one round trip.
var statsSnapshot = pgx.TxOptions{BeginQuery: "begin isolation level repeatable read, read only;\n" + db.StatsSet}

// LimitStats sets the limit of the memory of the statistics, about 280 bytes per device. It must be called before the
// first request. Once the devices whose teams ask regularly need more, most of them are read again each time.
func (s *Store) LimitStats(bytes int) { s.stats = teamcache.NewValues[teamStats](bytes) }

func (t *teamStats) bytes() int { return deviceStatsBytes * (1 + len(t.devices)) }

// of returns a copy of what is known of a source and some hours. t may be nil.
func (t *teamStats) of(source readingsSource, hours roomsensor.Window) *teamStats {
	known := &teamStats{source: source, hours: hours}
	if t != nil && t.source.version == source.version && t.hours == hours &&
		!slices.ContainsFunc(t.source.chunks, source.lacks) {
		known.devices = t.devices
	}
	return known
}

// currentHour returns the last of the hours, and pastHours the others.
func currentHour(hours roomsensor.Window) roomsensor.Window {
	return roomsensor.Window{From: hours.To.Add(-time.Hour), To: hours.To}
}

func pastHours(hours roomsensor.Window) roomsensor.Window {
	return roomsensor.Window{From: hours.From, To: hours.To.Add(-time.Hour)}
}

// addStats adds the statistics of some hours to the devices of a list. It takes what is known, and replaces that by the
// statistics of the devices in the list.
func (s *Store) addStats(
	ctx context.Context, teamID uuid.UUID, list *currentList, hours roomsensor.Window, known *teamStats,
) error {
	if hours.Empty() {
		return nil
	}
	before := known.devices
	known.devices = make(map[uuid.UUID]deviceStats, len(list.devices))
	var missing []missingStats
	for i := range list.devices {
		d := &list.devices[i]
		m := missingStats{device: d, read: deviceStats{versions: list.versions[i]}}
		if d.Latest != nil {
			m.read.newest = d.Latest.BucketAt.UnixMicro()
		}
		stats, ok := before[d.ID]
		switch {
		case ok && stats.versions == m.read.versions:
			known.devices[d.ID] = stats
			d.Last24h = stats.sum()
			continue
		case ok && stats.versions.late == m.read.versions.late && stats.newest >= currentHour(hours).From.UnixMicro():
			m.read.past, m.knowsPast = stats.past, true
		}
		missing = append(missing, m)
	}
	for part := range slices.Chunk(missing, s.StatsDevices) {
		err := pgx.BeginTxFunc(ctx, s.Pool, statsSnapshot, func(tx pgx.Tx) error {
			return s.readStats(ctx, tx, teamID, part, hours)
		})
		if err != nil {
			return err //nolint:wrapcheck // The callers wrap it.
		}
		for i := range part {
			m := &part[i]
			known.devices[m.device.ID] = m.read
			m.device.Last24h = m.read.sum()
		}
	}
	return nil
}

// missingStats are statistics that must be read.
type missingStats struct {
	device    *roomsensor.CurrentDevice
	read      deviceStats
	knowsPast bool // whether the past hours are known
}

// readStats reads statistics of some devices.
func (s *Store) readStats(
	ctx context.Context, tx pgx.Tx, teamID uuid.UUID, missing []missingStats, hours roomsensor.Window,
) error {
	var all, unknown []uuid.UUID
	for i := range missing {
		m := &missing[i]
		if all = append(all, m.device.ID); !m.knowsPast {
			unknown = append(unknown, m.device.ID)
		}
	}
	current, err := s.readings.ReadingStats(ctx, tx, teamID, all, currentHour(hours))
	if err != nil {
		return err
	}
	past, err := s.readings.HourStats(ctx, tx, teamID, unknown, pastHours(hours))
	if err != nil {
		return err
	}
	for i := range missing {
		m := &missing[i]
		m.read.current = packStats(current[m.device.ID])
		if !m.knowsPast {
			m.read.past = packStats(past[m.device.ID])
		}
	}
	return nil
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
