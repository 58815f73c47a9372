package ingest

import (
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"roomsensor/internal/roomsensor"
)

// This file says once more, in the plainest way, what decisions 37 to 41 make
// of uploads: one reading at a time, without batches, sorting or SQL. The
// uploads are made together with what they mean, so that nothing here parses.

// day is when the uploads of the model arrive; what they measured lies around
// its morning. It is in the past, so that a real queue can take them too.
var day = time.Now().UTC().Truncate(24 * time.Hour).Add(-48 * time.Hour)

func clock(hour, minute, second int) time.Time {
	return day.Add(time.Duration(hour)*time.Hour + time.Duration(minute)*time.Minute + time.Duration(second)*time.Second)
}

// swap and move are when units change places, off the grid of buckets on purpose.
var (
	swap = clock(8, 2, 13)
	move = clock(8, 17, 41)
)

// fleet is some devices and the units that sat in them.
type fleet struct {
	ours, theirs uuid.UUID // teams
	a, b, c      uuid.UUID // devices: a and b are ours
	units        map[string][]roomsensor.Installation
	first        string // sat in a until the swap, in c of the other team since the move
	second       string // sat in b until the swap, in a since
	unknown      string
	base         uint64 // sequences of its uploads come after it
}

func newFleet(ours, theirs, a, b, c uuid.UUID, units [3]string) *fleet {
	f := &fleet{ours: ours, theirs: theirs, a: a, b: b, c: c, first: units[0], second: units[1], unknown: units[2]}
	f.units = map[string][]roomsensor.Installation{
		f.first: {
			{HardwareID: f.first, DeviceID: a, TeamID: ours, To: &swap},
			{HardwareID: f.first, DeviceID: c, TeamID: theirs, From: &move},
		},
		f.second: {
			{HardwareID: f.second, DeviceID: b, TeamID: ours, To: &swap},
			{HardwareID: f.second, DeviceID: a, TeamID: ours, From: &swap},
		},
	}
	return f
}

func randomFleet() *fleet {
	return newFleet(uuid.New(), uuid.New(), uuid.New(), uuid.New(), uuid.New(), [3]string{"dev:1", "dev:2", "dev:3"})
}

// device is where a unit sat at an instant, as far as a team may know.
func (f *fleet) device(unit string, at time.Time, team *uuid.UUID) (device uuid.UUID, known, there bool) {
	for _, i := range f.units[unit] {
		if team != nil && *team != i.TeamID {
			continue
		}
		known = true
		if (i.From == nil || !at.Before(*i.From)) && (i.To == nil || at.Before(*i.To)) {
			return i.DeviceID, true, true
		}
	}
	return uuid.Nil, known, false
}

// sample is a reading as a device means it.
type sample struct {
	at      time.Time
	problem roomsensor.Reason
	values  map[roomsensor.Metric]float32
	bad     bool // some value is no plausible number
	text    string
}

// letter is an upload as a device means it.
type letter struct {
	unit     string
	team     *uuid.UUID
	arrived  time.Time
	sequence uint64
	head     string // of the text, up to the readings
	rssi     *int32
	bars     *int16
	firmware string
	badField bool
	samples  []sample
}

func (l *letter) text(samples ...sample) string {
	texts := make([]string, len(samples))
	for i := range samples {
		texts[i] = samples[i].text
	}
	return l.head + `"readings":[` + strings.Join(texts, ",") + `]}`
}

func (l *letter) delivery() *delivery {
	return judged(roomsensor.Arrival{At: l.arrived, Sequence: l.sequence, Team: l.team}, l.unit, []byte(l.text(l.samples...)))
}

// table is what must be in the tables.
type table struct {
	rows    map[string]roomsensor.Measurement // by device and bucket
	seen    map[string]roomsensor.DeviceSeen  // by device
	rejects map[string]string                 // payloads, by sequence and reason
}

func newTable() *table {
	return &table{map[string]roomsensor.Measurement{}, map[string]roomsensor.DeviceSeen{}, map[string]string{}}
}

func rowKey(device uuid.UUID, at time.Time) string {
	return fmt.Sprint(device, " ", at.Unix()/300)
}

func rejectKey(sequence uint64, reason roomsensor.Reason) string {
	return fmt.Sprint(sequence, " ", reason)
}

// expect is what must be in the tables after some uploads.
func (f *fleet) expect(letters []*letter) *table {
	t := newTable()
	for _, l := range letters {
		failed := map[roomsensor.Reason][]sample{}
		for _, s := range l.samples {
			device, known, there := f.device(l.unit, s.at, l.team)
			switch {
			case s.problem != "":
				failed[s.problem] = append(failed[s.problem], s)
			case !known:
				failed[roomsensor.ReasonUnknownUnit] = append(failed[roomsensor.ReasonUnknownUnit], s)
			case !there:
				failed[roomsensor.ReasonNotInstalled] = append(failed[roomsensor.ReasonNotInstalled], s)
			default:
				t.put(device, s)
				if s.bad {
					failed[roomsensor.ReasonValueInvalid] = append(failed[roomsensor.ReasonValueInvalid], s)
				}
			}
		}
		device, known, there := f.device(l.unit, l.arrived, l.team)
		if len(l.samples) == 0 && !known {
			failed[roomsensor.ReasonUnknownUnit] = []sample{}
		}
		if l.badField {
			failed[roomsensor.ReasonFieldInvalid] = []sample{}
		}
		for reason, samples := range failed {
			t.rejects[rejectKey(l.sequence, reason)] = l.text(samples...)
		}
		if there {
			t.look(device, l)
		}
	}
	return t
}

// put is decision 37.
func (t *table) put(device uuid.UUID, s sample) {
	key := rowKey(device, s.at)
	row, there := t.rows[key]
	switch {
	case !there || s.at.After(row.MeasuredAt):
		row = roomsensor.Measurement{MeasuredAt: s.at}
		fallthrough
	case s.at.Equal(row.MeasuredAt):
		for m, x := range s.values {
			if old, ok := row.Values.Get(m); !ok || x > old {
				row.Values.Set(m, x)
			}
		}
	}
	t.rows[key] = row
}

// look is decision 39; no two uploads of the model arrive at once.
func (t *table) look(device uuid.UUID, l *letter) {
	seen := t.seen[device.String()]
	seen.DeviceID = device
	if l.arrived.After(seen.LastSeenAt) {
		seen.LastSeenAt = l.arrived
	}
	if (l.rssi != nil || l.bars != nil) && l.arrived.After(seen.SignalAt) {
		seen.Signal, seen.SignalAt = &roomsensor.Signal{RSSI: l.rssi, Bars: l.bars}, l.arrived
	}
	if l.firmware != "" && l.arrived.After(seen.FirmwareAt) {
		seen.Firmware, seen.FirmwareAt = &l.firmware, l.arrived
	}
	t.seen[device.String()] = seen
}

// letters draws uploads that collide often: few units, few buckets, few values.
func (f *fleet) letters(t *rapid.T) []*letter {
	n := rapid.IntRange(1, 12).Draw(t, "uploads")
	list := make([]*letter, n)
	for i := range list {
		list[i] = f.letter(t, i)
	}
	return list
}

func (f *fleet) letter(t *rapid.T, i int) *letter {
	l := &letter{
		unit:     rapid.SampledFrom([]string{f.first, f.second, f.second, f.unknown}).Draw(t, "unit"),
		team:     rapid.SampledFrom([]*uuid.UUID{nil, &f.ours, &f.theirs}).Draw(t, "team"),
		arrived:  clock(9, i, 0).Add(time.Duration(i) * time.Microsecond),
		sequence: f.base + uint64(i+1),
	}
	l.head = `{"hardware_id":"` + l.unit + `",`
	switch rapid.IntRange(0, 5).Draw(t, "signal") {
	case 0:
		rssi := int32(-80 - i)
		l.rssi = &rssi
		l.head += fmt.Sprintf(`"signal":{"rssi_dbm":%d},`, rssi)
	case 1:
		bars := int16(i % 6)
		l.bars = &bars
		l.head += fmt.Sprintf(`"signal":{"bars":%d,"rssi_dbm":null},`, bars)
	case 2:
		l.badField = true
		l.head += `"signal":"strong",`
	}
	switch rapid.IntRange(0, 3).Draw(t, "firmware") {
	case 0:
		l.firmware = fmt.Sprint("1.", 20-i)
		l.head += `"firmware_version":"` + l.firmware + `",`
	case 1:
		l.badField = true
		l.head += `"firmware_version":"two point four",`
	}
	for range rapid.IntRange(0, 8).Draw(t, "readings") {
		l.samples = append(l.samples, drawSample(t))
	}
	return l
}

var instants = []time.Time{
	clock(7, 55, 0), clock(7, 59, 59), clock(8, 0, 0), clock(8, 2, 12), swap.Add(-time.Microsecond), swap,
	clock(8, 4, 59), clock(8, 5, 0), clock(8, 15, 0), move.Add(-time.Microsecond), move, clock(8, 20, 0),
}

func drawSample(t *rapid.T) sample {
	s := sample{values: map[roomsensor.Metric]float32{}, at: rapid.SampledFrom(instants).Draw(t, "at")}
	switch rapid.IntRange(0, 9).Draw(t, "time") {
	case 0:
		s.problem = roomsensor.ReasonMeasuredAtInvalid
		s.text = rapid.SampledFrom([]string{`{"measured_at":"today"`, `{"measured_at":null`, `{"note":1`}).Draw(t, "bad time")
	case 1:
		s.problem = roomsensor.ReasonMeasuredAtOutOfRange
		at := rapid.SampledFrom([]time.Time{time.Unix(0, 0), roomsensor.Forever}).Draw(t, "far")
		s.text = `{"measured_at":"` + roomsensor.FormatTime(at) + `"`
	default:
		s.text = `{"measured_at":"` + roomsensor.FormatTime(s.at) + `"`
	}
	for _, m := range []roomsensor.Metric{roomsensor.CO2, roomsensor.Temp, roomsensor.Lux} {
		s.drawValue(t, m)
	}
	s.text += "}"
	return s
}

func (s *sample) drawValue(t *rapid.T, m roomsensor.Metric) {
	texts := []string{"", "null", "1", "2.5", "2.4999", "-0", `"1"`, "1e400"}
	text := rapid.SampledFrom(texts).Draw(t, m.String())
	if text != "" {
		s.text += `,"` + m.String() + `":` + text
	}
	switch text {
	case "1":
		s.values[m] = 1
	case "2.5":
		s.values[m] = 2.5
	case "2.4999":
		s.values[m] = 2.4999
	case "-0":
		s.values[m] = 0
	case `"1"`, "1e400":
		s.bad = true
	}
}
