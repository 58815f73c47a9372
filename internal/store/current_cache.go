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

// The cache of teams has what was last read of each device: its row, and of its readings the newest one, and the sums
// of the current hour and of the past hours. A snapshot of a team reads the versions (xmin) of the rows of its
// devices and of their open assignments, and what it does not have:
//
//  1. What was read of a device is exact as long as these versions are the same, and of its readings as long as that
//     of its row is. A worker updates the row of every device whose readings it changes, in the same transaction.
//  2. If the version changed, but merge_version did not, workers have only added readings after latest_bucket_at.
//     These are read and added.
//  3. Otherwise the newest reading and the current hour are read again, and the past hours after keepPast, within the
//     60 seconds of decision 17 i: a late burst changes the version many times.
//  4. When an hour ends, the past hours are known if they were read without their first hour before: they are these
//     and the hour that ended. Each read of past hours reads them so. Otherwise that takes place once per hour and
//     team at a random time, because it takes long for all teams, which would wait for it at the beginning of an
//     hour.
//  5. All readings are read again when any other program changed readings, see foreign_writes, or a chunk was
//     dropped.
//  6. Everything is read again after a change of the server, and after keepAll. This limits how long a change of
//     readings has no effect that triggers do not see, such as one in a session with session_replication_role =
//     replica.
//
// Past hours that must be read come from the table current_hours as far as it has them, see current_hours.go.
//
// Versions are compared for equality only. A version appears again after 4 billion transactions, which take much
// longer than keepAll. What is read and its version are from one snapshot of the database, so that it does not
// matter which of two concurrent reads of a team is stored last.

const (
	// keepPast is for how long the sums of past hours of a changed device are used. 10 of the 60 seconds of decision 17 i
	// are left for a slow read.
	keepPast = 50 * time.Second
	// keepAll is for how long what was read is used at most. A random part of up to a half less spreads the reads of many
	// teams.
	keepAll = 6 * time.Hour
	// nextPastMargin is how long before the end of the hour the past hours of the next one are read at the latest. Most
	// teams ask more often than that.
	nextPastMargin = 5 * time.Minute
	// maxKeptBytes is the limit of the memory of what is kept of all teams, here of 120,000 devices, unless LimitKept sets
	// another one. The largest team that fits in a snapshot takes 6 MB, or more with long texts.
	maxKeptBytes = 64 << 20
)

// LimitKept sets the limit of the memory in which the store keeps what snapshots have read, about 550 bytes per
// device. It must be called before the first request. Once the devices whose teams ask regularly need more, most of
// them are read again each time.
func (s *Store) LimitKept(bytes int) { s.kept = teamcache.NewValues[keptTeam](bytes) }

// keptTeam is what was read of a team. It never changes.
type keptTeam struct {
	until      time.Time // when all of it must be read again
	pastAt     time.Time // since then, the past hours may lack changes
	nextPastAt time.Time // from then on, nextPast is read
	hours      roomsensor.Window
	source     readingsSource
	devices    []keptDevice // by id
}

// readingsSource is the state of the readings of all devices, as DeviceVersionListOfTeams returns it. If it changes,
// what was read may not be exact any more.
type readingsSource struct {
	serverStart time.Time
	writers     int64   // a hash of the transactions of other programs
	chunks      []int64 // in ascending order
}

// keptDevice is what was read of a device.
type keptDevice struct {
	deviceReadings

	id           uuid.UUID
	versions     deviceVersions
	mergeVersion int64 // or mergeUnknown
	bound        int64 // latest_bucket_at in microseconds since 1970, if mergeVersion is known
	packed       packedDevice
	hasReadings  bool // whether the readings were read, too
}

// deviceVersions are the versions (xmin) of what device_details has of a device.
type deviceVersions struct {
	device     uint32
	assignment uint32 // 0 without an open assignment
}

// deviceReadings is what was read of the readings of a device.
type deviceReadings struct {
	pastIsExact bool // whether past lacks no change
	hasNextPast bool // whether nextPast was read, and lacks no change
	latest      packedReading
	current     packedStats // of the last of the hours
	past        packedStats // of the other hours
	nextPast    packedStats // of the other hours but the first one
}

// mergeUnknown stands for merge_version of a device whose latest_bucket_at is unknown.
const mergeUnknown = -1

// onlyAdded reports whether workers only added readings after the newest one, which is in the hours, since d was read.
// The newest one is after latest_bucket_at if another program wrote it: workers may then add readings before it.
func (d *keptDevice) onlyAdded(now *keptDevice, hours roomsensor.Window) bool {
	return d.mergeVersion != mergeUnknown && d.mergeVersion == now.mergeVersion &&
		d.latest.exists && d.latest.bucketAt <= d.bound && d.latest.bucketAt >= hours.From.UnixMicro()
}

// add adds a reading that was not there.
func (d *deviceReadings) add(r *roomsensor.Reading, hours roomsensor.Window) {
	if !d.latest.exists || d.latest.bucketAt < r.BucketAt.UnixMicro() {
		d.latest = packReading(r)
	}
	switch at := r.BucketAt; {
	case currentHour(hours).Contains(at):
		d.current.add(&r.Values)
	case pastHours(hours).Contains(at):
		d.past.add(&r.Values)
		if nextPastHours(hours).Contains(at) {
			d.nextPast.add(&r.Values)
		}
	}
}

// nextHour returns what is known of the next hours, or nil if the past ones are unknown.
func (d *keptDevice) nextHour(hours roomsensor.Window) *keptDevice {
	if !d.pastIsExact || !d.hasNextPast || d.latest.exists && d.latest.bucketAt >= hours.To.UnixMicro() {
		return nil
	}
	next := *d
	next.past = packStats(d.nextPast.stats().Plus(d.current.stats()))
	next.current, next.nextPast, next.hasNextPast = packedStats{}, packedStats{}, false
	return &next
}

func (t *keptTeam) bytes() int {
	n := int(unsafe.Sizeof(*t)) + len(t.source.chunks)*int(unsafe.Sizeof(t.source.chunks[0])) +
		len(t.devices)*int(unsafe.Sizeof(keptDevice{}))
	for i := range t.devices {
		n += len(t.devices[i].packed)
	}
	return n
}

// isFrom reports whether what was kept can be compared with the versions of a source.
func (t *keptTeam) isFrom(now *readingsSource) bool {
	return t != nil && time.Now().Before(t.until) && t.source.serverStart.Equal(now.serverStart)
}

// hasReadingsOf reports whether readings that were kept are exact for devices whose version is the same, in their
// hours.
func (t *keptTeam) hasReadingsOf(now *readingsSource) bool {
	return t != nil && t.source.writers == now.writers && !slices.ContainsFunc(t.source.chunks, now.lacks)
}

// lacks reports whether a chunk of readings does not exist any more.
func (s *readingsSource) lacks(chunk int64) bool {
	_, exists := slices.BinarySearch(s.chunks, chunk)
	return !exists
}

// find returns what is known of a device, or nil.
func (t *keptTeam) find(id uuid.UUID) *keptDevice {
	if t == nil {
		return nil
	}
	i, found := slices.BinarySearchFunc(t.devices, id, func(d keptDevice, id uuid.UUID) int {
		return bytes.Compare(d.id[:], id[:])
	})
	if !found {
		return nil
	}
	return &t.devices[i]
}

// findReadings is find for the readings of a device in some hours.
func (t *keptTeam) findReadings(id uuid.UUID, hours roomsensor.Window) *keptDevice {
	d := t.find(id)
	switch {
	case d == nil || !d.hasReadings:
	case hours == t.hours:
		return d
	case hours == roomsensor.Window{From: t.hours.From.Add(time.Hour), To: t.hours.To.Add(time.Hour)}:
		return d.nextHour(t.hours)
	}
	return nil
}

// keepTeam stores what was read of a team.
func (s *Store) keepTeam(teamID uuid.UUID, t *keptTeam) {
	s.kept.Keep(teamID, teamcache.Entry[keptTeam]{Value: t, Bytes: t.bytes(), Until: t.until})
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

// add adds the values of a reading.
func (p *packedStats) add(values *roomsensor.Values) {
	var of roomsensor.Stats
	for m := range of {
		if x, ok := values.Get(roomsensor.Metric(m)); ok {
			of[m] = roomsensor.Stat{Min: x, Max: x, Sum: float64(x), Count: 1}
		}
	}
	*p = packStats(p.stats().Plus(of))
}

func (p *packedStats) stats() (stats roomsensor.Stats) {
	for m := range stats {
		stats[m] = roomsensor.Stat{Min: p.least[m], Max: p.most[m], Sum: p.sum[m], Count: int64(p.count[m])}
	}
	return stats
}
