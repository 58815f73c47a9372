package ledger

import (
	"fmt"
	"math/rand/v2"
	"time"

	"roomsensor/internal/roomsensor"
)

// maker makes requests of all shapes that a fleet sends, and some that it should not.
type maker struct {
	Options
	dice     *rand.Rand
	books    map[*Unit]*book
	requests []*Request
	uploads  int
	readings int
}

// Of a hundred requests, so many have a shape; the rest are plain.
var shapes = []struct {
	percent int
	make    func(*maker)
}{
	{7, (*maker).burst},
	{3, (*maker).parts},
	{3, (*maker).correction},
	{2, (*maker).implausible},
	{2, (*maker).outOfRange},
	{2, (*maker).foreign},
	{1, (*maker).unregistered},
	{1, (*maker).garbage},
	{2, (*maker).refused},
}

const (
	hundred          = 100
	againPercent     = 8  // sent twice on purpose
	abandonedPercent = 12 // not sent again after a failure
	// apart is how many requests lie at most between two that belong together.
	apart = 300
)

func (m *maker) one() {
	roll := m.dice.IntN(hundred)
	for _, s := range shapes {
		if roll -= s.percent; roll < 0 {
			s.make(m)
			return
		}
	}
	m.plain()
}

func (m *maker) percent(n int) bool { return m.dice.IntN(hundred) < n }

func (m *maker) unit() *Unit { return m.Units[m.dice.IntN(len(m.Units))] }

// emit puts a request at the end or some places later, and some of them once more still later.
func (m *maker) emit(r *Request) {
	r.rank += float64(len(m.requests))
	r.Abandoned = m.percent(abandonedPercent)
	m.requests = append(m.requests, r)
	if m.percent(againPercent) {
		again := *r
		again.rank += m.apart()
		m.requests = append(m.requests, &again)
	}
}

func (m *maker) apart() float64 { return apart * m.dice.Float64() }

// send emits a request with uploads of one team, on either path.
func (m *maker) send(uploads ...*Upload) { m.sendLater(0, uploads...) }

func (m *maker) sendLater(places float64, uploads ...*Upload) {
	r := &Request{Team: uploads[0].Unit.Team, Uploads: uploads, rank: places}
	if len(uploads) == 1 && m.percent(50) {
		r.Path = Stream
	}
	m.emit(r)
}

func (m *maker) measurements(u *Unit, n int, old bool) []roomsensor.Measurement {
	all := make([]roomsensor.Measurement, n)
	for i, at := range m.books[u].take(n, old) {
		at = at.Add(time.Duration(m.dice.Int64N(int64(bucket)))).Truncate(time.Microsecond)
		all[i] = roomsensor.Measurement{MeasuredAt: at, Values: valuesOf(m.Seed, u, at)}
	}
	return all
}

// upload makes an upload of measurements that must all be stored.
func (m *maker) upload(u *Unit, readings []roomsensor.Measurement) *Upload {
	m.uploads++
	m.readings += len(readings)
	up := &Upload{ID: m.uploads, Unit: u, Readings: readings, Sees: u.sits()}
	m.write(up, wired(readings))
	return up
}

func (m *maker) write(up *Upload, readings []wireReading) {
	up.Text = text(up.ID, up.Unit, m.Now, readings)
}

func wired(readings []roomsensor.Measurement) []wireReading {
	all := make([]wireReading, len(readings))
	for i := range readings {
		all[i] = readingOnWire(&readings[i])
	}
	return all
}

// plain is what a device or a gateway sends most of the time.
func (m *maker) plain() {
	const few, some, most = 3, 24, 4
	size := 1 + m.dice.IntN(few)
	if m.percent(30) {
		size = few + m.dice.IntN(some)
	}
	first := m.unit()
	uploads := []*Upload{m.upload(first, m.measurements(first, size, false))}
	for range m.dice.IntN(most) {
		if u := m.unit(); u.Team == first.Team {
			uploads = append(uploads, m.upload(u, m.measurements(u, size, false)))
		}
	}
	m.send(uploads...)
}

// burst is what a device sends after weeks offline.
func (m *maker) burst() {
	const least, more = 100, 300
	u := m.unit()
	m.send(m.upload(u, m.measurements(u, least+m.dice.IntN(more), true)))
}

// parts are two uploads that each bring some metrics of the same measurements, in either order.
func (m *maker) parts() {
	u := m.unit()
	first := m.dice.IntN(2)
	whole := m.measurements(u, 1+m.dice.IntN(10), false)
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
		m.sendLater(float64(part)*m.apart(), m.upload(u, readings))
	}
}

// correction is a second measurement in the same bucket, of which the later one counts, whichever comes first.
func (m *maker) correction() {
	u := m.unit()
	bucket := m.books[u].take(1, false)[0]
	offsets := []time.Duration{time.Minute, 4 * time.Minute}
	if m.percent(50) {
		offsets[0], offsets[1] = offsets[1], offsets[0]
	}
	for part, offset := range offsets {
		at := bucket.Add(offset)
		readings := []roomsensor.Measurement{{MeasuredAt: at, Values: valuesOf(m.Seed, u, at)}}
		m.sendLater(float64(part)*m.apart(), m.upload(u, readings))
	}
}

// implausible has a value outside its range: it is stored as null, and the upload makes a reject too.
func (m *maker) implausible() {
	u := m.unit()
	readings := m.measurements(u, 1+m.dice.IntN(5), false)
	broken := &readings[0]
	broken.Values = without(broken.Values, roomsensor.CO2)
	up := m.upload(u, readings)
	up.Reject = roomsensor.ReasonValueInvalid
	onWire, tooMuch := wired(readings), float32(1e6)
	onWire[0].CO2 = &tooMuch
	m.write(up, onWire)
	m.send(up)
}

func without(v roomsensor.Values, left roomsensor.Metric) (rest roomsensor.Values) {
	for _, metric := range roomsensor.Metrics {
		if x, ok := v.Get(metric); ok && metric != left {
			rest.Set(metric, x)
		}
	}
	return rest
}

// outOfRange has a reading from before 2015: it is a reject, the others are stored.
func (m *maker) outOfRange() {
	u := m.unit()
	readings := m.measurements(u, 1+m.dice.IntN(5), false)
	up := m.upload(u, readings)
	up.Reject = roomsensor.ReasonMeasuredAtOutOfRange
	onWire := wired(readings)
	early := onWire[0]
	early.MeasuredAt = "2014-06-01T12:00:00Z"
	m.write(up, append(onWire, early))
	m.send(up)
}

// foreign comes with the credential of another team: its unit is unknown there.
func (m *maker) foreign() {
	u := m.unit()
	up := m.rejected(u, roomsensor.ReasonUnknownUnit, m.measurements(u, 3, false))
	m.emit(&Request{Team: (u.Team + 1) % m.Teams, Uploads: []*Upload{up}})
}

// unregistered is of a unit that no device ever had.
func (m *maker) unregistered() {
	u := &Unit{HardwareID: fmt.Sprintf("dev:99%d", m.uploads), Team: m.dice.IntN(m.Teams)}
	at := m.Now.Add(-time.Hour).Truncate(time.Microsecond)
	m.send(m.rejected(u, roomsensor.ReasonUnknownUnit, []roomsensor.Measurement{{MeasuredAt: at}}))
}

// garbage is no JSON. Only the stream takes it.
func (m *maker) garbage() {
	up := m.rejected(m.unit(), roomsensor.ReasonNotParsable, nil)
	up.Text = fmt.Appendf(nil, `{"ledger":%q,"hardware_id":%q,"readings":[`, ledgerID(up.ID), up.Unit.HardwareID)
	m.emit(&Request{Path: Stream, Uploads: []*Upload{up}})
}

// rejected makes an upload of which nothing is stored but a reject.
func (m *maker) rejected(u *Unit, reason roomsensor.Reason, readings []roomsensor.Measurement) *Upload {
	m.uploads++
	up := &Upload{ID: m.uploads, Unit: u, Reject: reason}
	m.write(up, wired(readings))
	return up
}

// refused has a good upload beside a line that is none: the receiver takes nothing of it.
func (m *maker) refused() {
	u := m.unit()
	up := m.upload(u, m.measurements(u, 2, false))
	m.readings -= len(up.Readings)
	m.emit(&Request{Team: u.Team, Uploads: []*Upload{up}, Spoilt: `{"hardware_id":"dev:1"}`})
}
