package fleet

import (
	"time"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/simulate"
)

// Upload returns an upload of the i-th device with its readings of a window, in the wire format.
func (f *Fleet) Upload(i int, window roomsensor.Window) []byte {
	u := simulate.Upload{
		HardwareID: f.HardwareID(i), SentAt: window.To, Firmware: "2.4.1",
		Signal: &simulate.Signal{RSSI: -87, Bars: 2},
	}
	for at := window.From; at.Before(window.To); at = at.Add(roomsensor.BucketLength) {
		u.Readings = append(u.Readings, f.Reading(i, at))
	}
	return u.AppendJSON(nil)
}

// Uploads returns an upload of every device for each part of a window, part by part.
func (f *Fleet) Uploads(window roomsensor.Window, part time.Duration) (list [][]byte) {
	for from := window.From; from.Before(window.To); from = from.Add(part) {
		for i := range f.Devices {
			list = append(list, f.Upload(i, roomsensor.Window{From: from, To: from.Add(part)}))
		}
	}
	return list
}
