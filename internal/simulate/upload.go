package simulate

import (
	"iter"
	"strconv"
	"time"

	"roomsensor/internal/roomsensor"
)

// Signal is the cellular signal of an upload.
type Signal struct {
	RSSI int // dBm
	Bars int // 0 to 5
}

// signalOf returns a signal with the bars for a strength in dBm.
func signalOf(rssi int) *Signal {
	return &Signal{RSSI: rssi, Bars: max(0, min(5, (rssi+120)/10))}
}

// Upload is one upload of a device.
type Upload struct {
	HardwareID string
	SentAt     time.Time
	Firmware   string
	Signal     *Signal // nil: not part of the upload
	Readings   []roomsensor.Measurement
	// LeaveOut omits missing metrics from the JSON; otherwise they are null. A reading that misses all of them has them
	// as nulls, because it would be rejected without any (decision 45).
	LeaveOut bool
}

// AppendJSON appends the upload in the wire format, on one line without a newline.
func (u *Upload) AppendJSON(dst []byte) []byte {
	dst = append(dst, `{"hardware_id":"`...)
	dst = append(dst, u.HardwareID...)
	dst = append(dst, `","sent_at":"`...)
	dst = roomsensor.AppendTime(dst, u.SentAt)
	dst = append(dst, `","firmware_version":"`...)
	dst = append(dst, u.Firmware...)
	if u.Signal != nil {
		dst = append(dst, `","signal":{"rssi_dbm":`...)
		dst = strconv.AppendInt(dst, int64(u.Signal.RSSI), 10)
		dst = append(dst, `,"bars":`...)
		dst = strconv.AppendInt(dst, int64(u.Signal.Bars), 10)
		dst = append(dst, `},"readings":[`...)
	} else {
		dst = append(dst, `","readings":[`...)
	}
	for i := range u.Readings {
		if i > 0 {
			dst = append(dst, ',')
		}
		r := &u.Readings[i]
		dst = r.AppendJSON(dst, !u.LeaveOut || r.Values.Mask() == 0)
	}
	return append(dst, "]}"...)
}

// LiveUploads yields the uploads of devices from a time on, without an end: each device sends its newest measurement
// once per interval, and the devices are spread evenly over the interval. SentAt is when an upload is due. An upload is
// valid until the next one. A device that measured nothing for two buckets sends nothing.
func LiveUploads(devices []*Device, from time.Time, every time.Duration) iter.Seq[*Upload] {
	return func(yield func(*Upload) bool) {
		s := &sampler{}
		for round := from; ; round = round.Add(every) {
			for i, d := range devices {
				now := round.Add(every * time.Duration(i) / time.Duration(len(devices)))
				newest, ok := s.newest(d, now)
				if !ok {
					continue
				}
				r := newRNG(streamDelivery, d.fleet, d.index, now.UnixNano())
				if !yield(&Upload{
					HardwareID: d.HardwareID, SentAt: now.Truncate(time.Millisecond), Firmware: d.unit.firmware,
					Signal: signalOf(int(r.around(d.unit.rssi, 3))), Readings: []roomsensor.Measurement{newest},
				}) {
					return
				}
			}
		}
	}
}

// newest returns the newest measurement of a device at a time. ok is false if it measured nothing for two buckets.
func (s *sampler) newest(d *Device, now time.Time) (m roomsensor.Measurement, ok bool) {
	oldest := now.Add(-2 * roomsensor.BucketLength)
	bucket := roomsensor.BucketOf(now)
	for ; !bucket.Add(roomsensor.BucketLength).Before(oldest); bucket = bucket.Add(-roomsensor.BucketLength) {
		m, ok = s.measure(d, bucket)
		if ok && !m.MeasuredAt.After(now) {
			return m, !m.MeasuredAt.Before(oldest)
		}
	}
	return m, false
}
