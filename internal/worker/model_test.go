package worker

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"roomsensor/internal/queue"
	"roomsensor/internal/roomsensor"
)

// This file is a reference model of decisions 37 to 41: it takes one reading after the other, without batches, sorting
// or SQL. It generates uploads together with their meaning, so it parses nothing.

// day is the day on which the uploads of the model arrive.
var day = time.Date(2025, time.June, 2, 0, 0, 0, 0, time.UTC)

func clock(hour, minute, second int) time.Time {
	return day.Add(time.Duration(hour)*time.Hour + time.Duration(minute)*time.Minute + time.Duration(second)*time.Second)
}

// swap and move are when units change devices, inside of buckets on purpose.
var (
	swap = clock(8, 2, 13)
	move = clock(8, 17, 41)
)

// fixture is some devices and their units.
type fixture struct {
	ours, theirs  uuid.UUID // teams
	a, b, c       uuid.UUID // devices: a and b are ours
	installations map[string][]roomsensor.Installation
	first         string // unit in a until swap, and in c since move
	second        string // unit in b until swap, and in a since then
	unknown       string // unit that was never installed
	sequence      uint64 // stream sequence before its first upload
}

func newFixture(ours, theirs, a, b, c uuid.UUID, units [3]string) *fixture {
	f := &fixture{ours: ours, theirs: theirs, a: a, b: b, c: c, first: units[0], second: units[1], unknown: units[2]}
	f.installations = map[string][]roomsensor.Installation{
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

// inMemory returns a fixture and a store that knows it.
func inMemory() (*fixture, *memoryStore) {
	f := newFixture(uuid.New(), uuid.New(), uuid.New(), uuid.New(), uuid.New(), [3]string{"dev:1", "dev:2", "dev:3"})
	return f, newMemoryStore(f.installations)
}

// device returns the device of a unit at an instant, as far as a team may know it.
func (f *fixture) device(unit string, at time.Time, team *uuid.UUID) (device uuid.UUID, known, installed bool) {
	for _, i := range f.installations[unit] {
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

// reading is a reading as the device means it.
type reading struct {
	at      time.Time
	problem roomsensor.Reason
	metric  bool // some metric is a member
	values  map[roomsensor.Metric]float32
	invalid bool // some value is not a plausible number
	text    string
}

// sent is an upload as the device means it.
type sent struct {
	unit     string
	team     *uuid.UUID
	arrived  time.Time
	sequence uint64
	head     string // the text before the readings
	rssi     *int32
	bars     *int16
	firmware string
	badField bool
	readings []reading
}

func (u *sent) text(readings ...reading) string {
	texts := make([]string, len(readings))
	for i := range readings {
		texts[i] = readings[i].text
	}
	return u.head + `"readings":[` + strings.Join(texts, ",") + `]}`
}

func (u *sent) delivery() *delivery {
	return parsed(roomsensor.Arrival{At: u.arrived, Sequence: u.sequence, Team: u.team}, u.unit, []byte(u.text(u.readings...)))
}

// content is the content of the tables.
type content struct {
	rows       map[string]roomsensor.Measurement     // by device and bucket
	heartbeats map[string]roomsensor.DeviceHeartbeat // by device
	rejects    map[string]string                     // payloads by sequence and reason
}

func newContent() *content {
	return &content{map[string]roomsensor.Measurement{}, map[string]roomsensor.DeviceHeartbeat{}, map[string]string{}}
}

func rowKey(device uuid.UUID, at time.Time) string {
	return fmt.Sprint(device, " ", at.Unix()/300)
}

func rejectKey(sequence uint64, reason roomsensor.Reason) string {
	return fmt.Sprint(sequence, " ", reason)
}

// expect returns the content of the tables after some uploads.
func (f *fixture) expect(uploads []*sent) *content {
	c := newContent()
	for _, u := range uploads {
		failed := map[roomsensor.Reason][]reading{}
		for _, r := range u.readings {
			device, known, installed := f.device(u.unit, r.at, u.team)
			switch {
			case r.problem != "":
				failed[r.problem] = append(failed[r.problem], r)
			case !known:
				failed[roomsensor.ReasonUnknownUnit] = append(failed[roomsensor.ReasonUnknownUnit], r)
			case !installed:
				failed[roomsensor.ReasonNotInstalled] = append(failed[roomsensor.ReasonNotInstalled], r)
			case !r.metric:
				failed[roomsensor.ReasonNoMetric] = append(failed[roomsensor.ReasonNoMetric], r)
			default:
				c.merge(device, r)
				if r.invalid {
					failed[roomsensor.ReasonValueInvalid] = append(failed[roomsensor.ReasonValueInvalid], r)
				}
			}
		}
		device, known, installed := f.device(u.unit, u.arrived, u.team)
		if len(u.readings) == 0 && !known {
			failed[roomsensor.ReasonUnknownUnit] = []reading{}
		}
		if u.badField {
			failed[roomsensor.ReasonFieldInvalid] = []reading{}
		}
		for reason, readings := range failed {
			c.rejects[rejectKey(u.sequence, reason)] = u.text(readings...)
		}
		if installed {
			c.beat(device, u)
		}
	}
	return c
}

// merge is the late-merge rule, decision 37.
func (c *content) merge(device uuid.UUID, r reading) {
	key := rowKey(device, r.at)
	row, exists := c.rows[key]
	switch {
	case !exists || r.at.After(row.MeasuredAt):
		row = roomsensor.Measurement{MeasuredAt: r.at}
		fallthrough
	case r.at.Equal(row.MeasuredAt):
		for m, x := range r.values {
			if old, ok := row.Values.Get(m); !ok || x > old {
				row.Values.Set(m, x)
			}
		}
	}
	c.rows[key] = row
}

// beat is the heartbeat of decision 39. No two uploads of the model arrive at the same time.
func (c *content) beat(device uuid.UUID, u *sent) {
	h := c.heartbeats[device.String()]
	h.DeviceID = device
	if u.arrived.After(h.LastSeenAt) {
		h.LastSeenAt = u.arrived
	}
	if (u.rssi != nil || u.bars != nil) && u.arrived.After(h.SignalAt) {
		h.Signal, h.SignalAt = &roomsensor.Signal{RSSI: u.rssi, Bars: u.bars}, u.arrived
	}
	if u.firmware != "" && u.arrived.After(h.FirmwareAt) {
		h.Firmware, h.FirmwareAt = &u.firmware, u.arrived
	}
	c.heartbeats[device.String()] = h
}

// uploads draws uploads that often collide: few units, few buckets, few values.
func (f *fixture) uploads(t *rapid.T) []*sent {
	n := rapid.IntRange(1, 12).Draw(t, "uploads")
	list := make([]*sent, n)
	for i := range list {
		list[i] = f.upload(t, i)
	}
	return list
}

func (f *fixture) upload(t *rapid.T, i int) *sent {
	u := &sent{
		unit:     rapid.SampledFrom([]string{f.first, f.second, f.second, f.unknown}).Draw(t, "unit"),
		team:     rapid.SampledFrom([]*uuid.UUID{nil, &f.ours, &f.theirs}).Draw(t, "team"),
		arrived:  clock(9, i, 0).Add(time.Duration(i) * time.Microsecond),
		sequence: f.sequence + uint64(i+1),
	}
	u.head = `{"hardware_id":"` + u.unit + `",`
	switch rapid.IntRange(0, 5).Draw(t, "signal") {
	case 0:
		u.rssi = new(int32(-80 - i))
		u.head += fmt.Sprintf(`"signal":{"rssi_dbm":%d},`, *u.rssi)
	case 1:
		u.bars = new(int16(i % 6))
		u.head += fmt.Sprintf(`"signal":{"bars":%d,"rssi_dbm":null},`, *u.bars)
	case 2:
		u.badField = true
		u.head += `"signal":"strong",`
	}
	switch rapid.IntRange(0, 3).Draw(t, "firmware") {
	case 0:
		u.firmware = fmt.Sprint("1.", 20-i)
		u.head += `"firmware_version":"` + u.firmware + `",`
	case 1:
		u.badField = true
		u.head += `"firmware_version":"two point four",`
	}
	for range rapid.IntRange(0, 8).Draw(t, "readings") {
		u.readings = append(u.readings, drawReading(t))
	}
	return u
}

// manyUploads returns about 250 uploads, the same ones every time except for the ids.
func (f *fixture) manyUploads() (list []*sent) {
	generator := rapid.Custom(f.uploads)
	for seed := range 40 {
		list = append(list, generator.Example(seed)...)
	}
	return list
}

var instants = []time.Time{
	clock(7, 55, 0), clock(7, 59, 59), clock(8, 0, 0), clock(8, 2, 12), swap.Add(-time.Microsecond), swap,
	clock(8, 4, 59), clock(8, 5, 0), clock(8, 15, 0), move.Add(-time.Microsecond), move, clock(8, 20, 0),
}

func drawReading(t *rapid.T) reading {
	r := reading{values: map[roomsensor.Metric]float32{}, at: rapid.SampledFrom(instants).Draw(t, "at")}
	switch rapid.IntRange(0, 9).Draw(t, "time") {
	case 0:
		r.problem = roomsensor.ReasonMeasuredAtInvalid
		r.text = rapid.SampledFrom([]string{`{"measured_at":"today"`, `{"measured_at":null`, `{"note":1`}).Draw(t, "bad time")
	case 1:
		r.problem = roomsensor.ReasonMeasuredAtOutOfRange
		at := rapid.SampledFrom([]time.Time{time.Unix(0, 0), roomsensor.Forever}).Draw(t, "far")
		r.text = `{"measured_at":"` + roomsensor.FormatTime(at) + `"`
	default:
		r.text = `{"measured_at":"` + roomsensor.FormatTime(r.at) + `"`
	}
	for _, m := range []roomsensor.Metric{roomsensor.CO2, roomsensor.Temp, roomsensor.Lux} {
		r.drawValue(t, m)
	}
	r.text += "}"
	return r
}

func (r *reading) drawValue(t *rapid.T, m roomsensor.Metric) {
	text := rapid.SampledFrom([]string{"", "null", "1", "2.5", "2.4999", "-0", `"1"`, "1e400"}).Draw(t, m.String())
	if text != "" {
		r.text += `,"` + m.String() + `":` + text
		r.metric = true
	}
	if x, ok := map[string]float32{"1": 1, "2.5": 2.5, "2.4999": 2.4999, "-0": 0}[text]; ok {
		r.values[m] = x
	}
	r.invalid = r.invalid || text == `"1"` || text == "1e400"
}

// drawBatches draws batches of deliveries of uploads, in any order and with repetitions.
func drawBatches(t *rapid.T, uploads []*sent) (batches [][]*delivery) {
	order := append(slices.Clone(uploads), rapid.SliceOfN(rapid.SampledFrom(uploads), 0, len(uploads)).Draw(t, "again")...)
	order = rapid.Permutation(order).Draw(t, "order")
	for len(order) > 0 {
		n := rapid.IntRange(1, len(order)).Draw(t, "batch")
		var batch []*delivery
		for _, u := range order[:n] {
			batch = append(batch, u.delivery())
		}
		batches, order = append(batches, batch), order[n:]
	}
	return batches
}

// readingAt returns the text of a reading. Without values, its only metric is null.
func readingAt(instant time.Time, values string) string {
	return `{"measured_at":"` + roomsensor.FormatTime(instant) + `",` + cmp.Or(values, `"lux":null`) + "}"
}

// messageOf returns the message of an upload with some readings, from a trusted publisher.
func messageOf(unit string, readings ...string) queue.Message {
	return queue.Message{HardwareID: unit, Text: []byte(`{"hardware_id":"` + unit + `","readings":[` + strings.Join(readings, ",") + `]}`)}
}

// deliveryOf returns the delivery of an upload that arrives in the evening of the day.
func deliveryOf(unit string, sequence uint64, readings ...string) *delivery {
	return parsed(roomsensor.Arrival{At: clock(21, 0, 0), Sequence: sequence}, unit, messageOf(unit, readings...).Text)
}
