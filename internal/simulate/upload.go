package simulate

import (
	"strconv"
	"time"

	"roomsensor/internal/roomsensor"
)

// Signal is the cellular signal of an upload.
type Signal struct {
	RSSI int // dBm
	Bars int // 0 to 5
}

// signalOf counts the bars of a signal strength in dBm.
func signalOf(rssi int) Signal {
	return Signal{RSSI: rssi, Bars: max(0, min(5, (rssi+120)/10))}
}

// Upload is what a device sends at once.
type Upload struct {
	HardwareID string
	SentAt     time.Time
	Firmware   string
	Signal     *Signal // nil: the upload does not say
	Readings   []roomsensor.Measurement
	// LeaveOut leaves missing metrics out of the JSON; else they are null.
	LeaveOut bool
}

// AppendJSON appends the upload in the wire format, on one line without its
// end.
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
		dst = u.appendReading(dst, &u.Readings[i])
	}
	return append(dst, "]}"...)
}

func (u *Upload) appendReading(dst []byte, r *roomsensor.Measurement) []byte {
	dst = append(dst, `{"measured_at":"`...)
	dst = roomsensor.AppendTime(dst, r.MeasuredAt)
	dst = append(dst, '"')
	for _, m := range roomsensor.Metrics {
		x, ok := r.Values.Get(m)
		if !ok && u.LeaveOut {
			continue
		}
		dst = append(dst, `,"`...)
		dst = append(dst, m.String()...)
		dst = append(dst, `":`...)
		if ok {
			dst = roomsensor.AppendNumber(dst, x)
		} else {
			dst = append(dst, "null"...)
		}
	}
	return append(dst, '}')
}
