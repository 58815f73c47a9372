package store

import (
	"bytes"
	"slices"
	"time"
	"unsafe"

	"github.com/google/uuid"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/teamcache"
)

// The cache of readings has what was last read of the readings of each device: the newest one, and the sums of the
// current hour and of the past hours. A snapshot of a team reads its devices, and the readings only of those that
// changed:
//
//  1. What was read of a device is exact as long as the version of its row (xmin) is the same. A worker updates the
//     row of every device whose readings it changes, in the same transaction.
//  2. All of it is read again when any other program changed readings, when a chunk was created or dropped, and after
//     a change of the server. DeviceListOfTeams returns a hash of these, see reading_writers.
//  3. The sums of past hours stay exact if past_version of the device is the same, and the device had a reading in the
//     current hour when they were read. Otherwise they are not read again when the version changes, but after keepPast,
//     within the 60 seconds of decision 17 i: a late burst changes the version many times.
//  4. All of it is read again when the hour changed, and after keepReadings. This limits how long a change has no
//     effect that triggers do not see, such as one in a session with session_replication_role = replica.
//
// Versions are compared for equality only. A version appears again after 4 billion transactions, which take much
// longer than keepReadings. What is read and its version are from one snapshot of the database, so that it does not
// matter which of two concurrent reads of a team is stored last.

const (
	// keepPast is for how long the sums of past hours of a changed device are used. 10 of the 60 seconds of decision 17 i
	// are left for a slow read.
	keepPast = 50 * time.Second
	// keepReadings is for how long readings are used at most. A random part of up to a half less spreads the reads of
	// many teams.
	keepReadings = 15 * time.Minute
	// maxReadingsBytes is the limit of the memory of the readings of all teams, here of 120,000 devices, unless
	// LimitReadings sets another one. A team has at most the devices of a snapshot, so that none takes more than a tenth
	// of it.
	maxReadingsBytes = 32 << 20
)

// LimitReadings sets the limit of the memory in which the store keeps the readings of snapshots, about 270 bytes per
// device. It must be called before the first request. Once the devices whose teams ask regularly need more, most of
// their readings are read again each time.
func (s *Store) LimitReadings(bytes int) { s.readings = teamcache.NewValues[teamReadings](bytes) }

// teamReadings is what was read of the readings of a team. It never changes.
type teamReadings struct {
	until   time.Time // when all of it must be read again
	pastAt  time.Time // since then, sums of past hours may be of an older version
	hours   roomsensor.Window
	writers int64            // of DeviceListOfTeams
	devices []deviceReadings // by id
}

// deviceReadings is what was read of the readings of a device.
type deviceReadings struct {
	id          uuid.UUID
	version     uint32 // of the row in devices
	pastVersion uint32 // the version when past was read
	pastMark    int64  // past_version then, or notSettled
	latest      packedReading
	current     packedStats // of the last of the hours
	past        packedStats // of the other hours
}

// notSettled stands for past_version of a device whose latest_bucket_at is not in the current hour: a worker may then
// store readings of a past hour without changing past_version.
const notSettled = -1

// pastIsExact reports whether the sums of past hours are those of the device as it is now. A worker changes
// past_version if it stores a reading before the hour of latest_bucket_at, or while that is unknown, or if it moves it
// back.
func (d *deviceReadings) pastIsExact(now *deviceReadings) bool {
	return d.pastVersion == now.version || d.pastMark != notSettled && d.pastMark == now.pastMark
}

func (t *teamReadings) bytes() int {
	return int(unsafe.Sizeof(*t)) + len(t.devices)*int(unsafe.Sizeof(deviceReadings{}))
}

// serves reports whether readings that were kept are exact for devices whose version is the same.
func (t *teamReadings) serves(hours roomsensor.Window, writers int64) bool {
	return t != nil && t.hours == hours && t.writers == writers && time.Now().Before(t.until)
}

// find returns the readings of a device, or nil.
func (t *teamReadings) find(id uuid.UUID) *deviceReadings {
	i, found := slices.BinarySearchFunc(t.devices, id, func(d deviceReadings, id uuid.UUID) int {
		return bytes.Compare(d.id[:], id[:])
	})
	if !found {
		return nil
	}
	return &t.devices[i]
}

// keepTeam stores the readings of a team.
func (s *Store) keepTeam(teamID uuid.UUID, t *teamReadings) {
	s.readings.Keep(teamID, teamcache.Entry[teamReadings]{
		Value: t, Bytes: t.bytes(), Until: t.until,
	})
}

// packedReading is a reading, or none.
type packedReading struct {
	bucketAt, ingestedAt int64 // in microseconds since 1970
	values               roomsensor.Values
	exists               bool
}

func packReading(r *roomsensor.Reading) packedReading {
	if r == nil {
		return packedReading{}
	}
	return packedReading{r.BucketAt.UnixMicro(), r.IngestedAt.UnixMicro(), r.Values, true}
}

func (p *packedReading) reading() *roomsensor.Reading {
	if !p.exists {
		return nil
	}
	return &roomsensor.Reading{
		BucketAt: time.UnixMicro(p.bucketAt).UTC(), IngestedAt: time.UnixMicro(p.ingestedAt).UTC(), Values: p.values,
	}
}

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
