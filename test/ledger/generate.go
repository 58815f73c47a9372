package ledger

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"roomsensor/internal/roomsensor"
)

// Options describe the requests to generate.
type Options struct {
	Seed     uint64
	Readings int           // minimum of distinct readings in requests that are retried until they are confirmed
	Span     time.Duration // period over which the requests are due
	Now      time.Time     // no reading is newer
	Teams    int
	Units    []*Unit // at least one per team
	Burst    int     // most readings of an upload after weeks offline; 0 means 400
}

// Make generates requests. The same options give the same requests.
func Make(o Options) ([]*Request, error) {
	g := &generator{
		Options: o,
		rng:     rand.New(rand.NewPCG(o.Seed, 1)), //nolint:gosec // The same seed must give the same requests.
		buckets: map[*Unit]*bucketSource{},
		stored:  map[Key]bool{},
	}
	for _, u := range o.Units {
		g.buckets[u] = newBucketSource(u, o.Now)
	}
	g.each()
	for len(g.stored) < o.Readings {
		g.one()
		for _, b := range g.buckets {
			if b.overrun() {
				return nil, errors.New("generating uploads: the number of readings needs more units")
			}
		}
	}
	slices.SortStableFunc(g.requests, func(a, b *Request) int { return cmp.Compare(a.rank, b.rank) })
	last := g.requests[len(g.requests)-1].rank
	for _, r := range g.requests {
		r.Due = time.Duration(float64(o.Span) * r.rank / (last + 1))
	}
	return g.requests, nil
}

// generator generates requests of every kind that a fleet sends, including invalid ones.
type generator struct {
	Options
	rng      *rand.Rand
	buckets  map[*Unit]*bucketSource
	requests []*Request
	uploads  int
	// stored contains the readings of requests that are retried until they are confirmed: the tables must hold them.
	stored map[Key]bool
	// guaranteed makes the next requests retried and sent twice.
	guaranteed bool
}

// kinds are the kinds of requests and their shares in percent. The rest are plain.
var kinds = []struct {
	percent int
	make    func(*generator)
}{
	{7, (*generator).burst},
	{3, (*generator).parts},
	{3, (*generator).correction},
	{2, (*generator).implausible},
	{2, (*generator).outOfRange},
	{2, (*generator).foreign},
	{1, (*generator).unregistered},
	{1, (*generator).garbage},
	{2, (*generator).refused},
}

const (
	hundred          = 100
	repeatPercent    = 8  // sent twice on purpose
	abandonedPercent = 12 // not retried
	sourcePercent    = 65 // of requests with one upload, which makes a third of all uploads
	// maxDistance is the maximum number of requests between two that belong together.
	maxDistance = 300
)

// one generates one request of a random kind.
func (g *generator) one() {
	roll := g.rng.IntN(hundred)
	for _, s := range kinds {
		if roll -= s.percent; roll < 0 {
			s.make(g)
			return
		}
	}
	g.plain()
}

// each generates one request of every kind, in random order, so that no trial misses a kind. Each is retried until it
// is confirmed, and sent twice.
func (g *generator) each() {
	g.guaranteed = true
	for _, i := range g.rng.Perm(len(kinds)) {
		kinds[i].make(g)
	}
	g.guaranteed = false
}

func (g *generator) percent(n int) bool { return g.rng.IntN(hundred) < n }

func (g *generator) unit() *Unit { return g.Units[g.rng.IntN(len(g.Units))] }

// emit appends a request, at the end or r.rank positions later. Some requests are appended twice.
func (g *generator) emit(r *Request) {
	r.rank += float64(len(g.requests))
	r.Abandoned = g.percent(abandonedPercent) && !g.guaranteed
	g.requests = append(g.requests, r)
	g.count(r)
	if g.percent(repeatPercent) || g.guaranteed {
		again := *r
		again.rank += g.distance()
		g.requests = append(g.requests, &again)
	}
}

// count records the readings that the service must store. Two measurements of one bucket are one reading.
func (g *generator) count(r *Request) {
	if r.Abandoned || r.InvalidLine != "" {
		return
	}
	for _, u := range r.Uploads {
		for i := range u.Readings {
			g.stored[KeyOf(u.Unit.Device, u.Readings[i].Bucket())] = true
		}
	}
}

func (g *generator) distance() float64 { return maxDistance * g.rng.Float64() }

// send emits a request with uploads of one team, on a random path.
func (g *generator) send(uploads ...*Upload) { g.sendLater(0, uploads...) }

func (g *generator) sendLater(distance float64, uploads ...*Upload) {
	r := &Request{Team: uploads[0].Unit.Team, Uploads: uploads, rank: distance}
	if len(uploads) == 1 {
		switch {
		case hasValues(uploads[0].Readings) && g.percent(sourcePercent):
			r.Path = Source
		case g.percent(50):
			r.Path = Stream
		}
	}
	g.emit(r)
}

// hasValues reports whether each measurement has a value: a source does not store one without (A11.9).
func hasValues(readings []roomsensor.Measurement) bool {
	return !slices.ContainsFunc(readings, func(m roomsensor.Measurement) bool { return m.Values == (roomsensor.Values{}) })
}

func (g *generator) measurements(u *Unit, n int, old bool) []roomsensor.Measurement {
	all := make([]roomsensor.Measurement, n)
	for i, at := range g.buckets[u].take(n, old) {
		at = at.Add(time.Duration(g.rng.Int64N(int64(bucket)))).Truncate(time.Microsecond)
		all[i] = roomsensor.Measurement{MeasuredAt: at, Values: valuesOf(g.Seed, u, at)}
	}
	return all
}

// upload returns an upload whose readings must all be stored.
func (g *generator) upload(u *Unit, readings []roomsensor.Measurement) *Upload {
	g.uploads++
	return &Upload{
		ID: g.uploads, Unit: u, Text: text(g.uploads, u, g.Now, readings), Readings: readings, Heartbeat: u.isAssigned(),
	}
}

// plain sends a few readings of one unit, or of several units of a team as a gateway does.
func (g *generator) plain() {
	const few, some, most = 3, 24, 3
	size := 1 + g.rng.IntN(few)
	if g.percent(30) {
		size = few + g.rng.IntN(some)
	}
	first := g.unit()
	uploads := []*Upload{g.upload(first, g.measurements(first, size, false))}
	for range g.rng.IntN(most) {
		if u := g.unit(); u.Team == first.Team {
			uploads = append(uploads, g.upload(u, g.measurements(u, size, false)))
		}
	}
	g.send(uploads...)
}

// burst sends what a device sends after weeks offline.
func (g *generator) burst() {
	const most = 400
	burst := cmp.Or(g.Burst, most)
	u := g.unit()
	g.send(g.upload(u, g.measurements(u, burst/4+g.rng.IntN(burst*3/4), true)))
}

// parts sends two uploads with different metrics of the same measurements, in random order.
func (g *generator) parts() {
	u := g.unit()
	first := g.rng.IntN(2)
	whole := g.measurements(u, 1+g.rng.IntN(10), false)
	for part := range 2 {
		readings := make([]roomsensor.Measurement, len(whole))
		for i := range whole {
			readings[i].MeasuredAt = whole[i].MeasuredAt
			for _, metric := range roomsensor.Metrics {
				if x, ok := whole[i].Values.Get(metric); ok && (int(metric)+first)%2 == part {
					readings[i].Values.Set(metric, x)
				}
			}
		}
		g.sendLater(float64(part)*g.distance(), g.upload(u, readings))
	}
}

// correction sends two measurements of the same bucket, in random order: the later measurement wins.
func (g *generator) correction() {
	u := g.unit()
	bucket := g.buckets[u].take(1, false)[0]
	offsets := []time.Duration{time.Minute, 4 * time.Minute}
	if g.percent(50) {
		offsets[0], offsets[1] = offsets[1], offsets[0]
	}
	for part, offset := range offsets {
		at := bucket.Add(offset)
		readings := []roomsensor.Measurement{{MeasuredAt: at, Values: valuesOf(g.Seed, u, at)}}
		g.sendLater(float64(part)*g.distance(), g.upload(u, readings))
	}
}

// implausible sends a value outside its range: it is stored as null, and the upload creates a reject.
func (g *generator) implausible() {
	u := g.unit()
	readings := g.measurements(u, 1+g.rng.IntN(5), false)
	readings[0].Values = without(readings[0].Values, roomsensor.CO2)
	sent := slices.Clone(readings)
	sent[0].Values.Set(roomsensor.CO2, 1e6)
	up := g.upload(u, sent)
	up.Readings, up.Reject = readings, roomsensor.ReasonValueInvalid
	g.send(up)
}

func without(v roomsensor.Values, left roomsensor.Metric) (rest roomsensor.Values) {
	for _, metric := range roomsensor.Metrics {
		if x, ok := v.Get(metric); ok && metric != left {
			rest.Set(metric, x)
		}
	}
	return rest
}

// outOfRange sends a reading from before 2015, which is rejected. The others are stored.
func (g *generator) outOfRange() {
	u := g.unit()
	readings := g.measurements(u, 1+g.rng.IntN(5), false)
	early := readings[0]
	early.MeasuredAt = time.Date(2014, time.June, 1, 12, 0, 0, 0, time.UTC)
	up := g.upload(u, append(slices.Clone(readings), early))
	up.Readings, up.Reject = readings, roomsensor.ReasonMeasuredAtOutOfRange
	g.send(up)
}

// foreign sends the credential of another team, which does not have the unit.
func (g *generator) foreign() {
	u := g.unit()
	up := g.rejected(u, roomsensor.ReasonUnknownUnit, g.measurements(u, 3, false))
	g.emit(&Request{Team: (u.Team + 1) % g.Teams, Uploads: []*Upload{up}})
}

// unregistered sends readings of a unit that was never registered.
func (g *generator) unregistered() {
	u := &Unit{HardwareID: fmt.Sprintf("dev:99%d", g.uploads), Team: g.rng.IntN(g.Teams)}
	at := g.Now.Add(-time.Hour).Truncate(time.Microsecond)
	m := roomsensor.Measurement{MeasuredAt: at}
	m.Values.Set(roomsensor.CO2, 400)
	g.send(g.rejected(u, roomsensor.ReasonUnknownUnit, []roomsensor.Measurement{m}))
}

// garbage sends text that is not JSON. Only the stream accepts it.
func (g *generator) garbage() {
	up := g.rejected(g.unit(), roomsensor.ReasonNotParsable, nil)
	up.Text = fmt.Appendf(nil, `{"firmware_version":%q,"hardware_id":%q,"readings":[`,
		firmwareOf(up.ID), up.Unit.HardwareID)
	g.emit(&Request{Path: Stream, Uploads: []*Upload{up}})
}

// rejected returns an upload of which nothing is stored but a reject.
func (g *generator) rejected(u *Unit, reason roomsensor.Reason, readings []roomsensor.Measurement) *Upload {
	up := g.upload(u, readings)
	up.Readings, up.Heartbeat, up.Reject = nil, false, reason
	return up
}

// refused sends a valid upload and an invalid line: the receiver refuses both.
func (g *generator) refused() {
	u := g.unit()
	up := g.upload(u, g.measurements(u, 2, false))
	g.emit(&Request{Team: u.Team, Uploads: []*Upload{up}, InvalidLine: `{"hardware_id":"dev:1"}`})
}

// bucketSource hands out each bucket of a unit once, going back in time: recent ones for regular uploads, and old ones
// for uploads after weeks offline.
type bucketSource struct{ recent, minRecent, old, minOld time.Time }

const (
	bucket = 5 * time.Minute
	day    = 24 * time.Hour
	// OldAge is the minimum age of readings in bursts.
	OldAge = 50 * day
	// Oldest is the maximum age of a reading, so that one export of the API covers all.
	Oldest = 88 * day
)

func newBucketSource(u *Unit, now time.Time) *bucketSource {
	b := &bucketSource{
		recent: now.Truncate(bucket), minRecent: now.Add(-OldAge),
		old: now.Add(-OldAge).Truncate(bucket), minOld: now.Add(-Oldest),
	}
	if !u.To.IsZero() {
		b.recent = u.To.Truncate(bucket)
	}
	if !u.From.IsZero() {
		b.minRecent, b.old = u.From, time.Time{} // The unit was not assigned that long ago.
	}
	return b
}

func (b *bucketSource) take(n int, old bool) []time.Time {
	from := &b.recent
	if old && !b.old.IsZero() {
		from = &b.old
	}
	buckets := make([]time.Time, n)
	for i := range buckets {
		*from = from.Add(-bucket)
		buckets[i] = *from
	}
	return buckets
}

// overrun reports whether more buckets were taken than the unit has.
func (b *bucketSource) overrun() bool {
	return b.recent.Before(b.minRecent) || !b.old.IsZero() && b.old.Before(b.minOld)
}
