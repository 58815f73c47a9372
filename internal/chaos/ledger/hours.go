package ledger

import (
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/roomsensor"
)

// Hour is what one device's hour says it is made of.
type Hour struct {
	Device uuid.UUID
	Hour   time.Time
	Counts [roomsensor.MetricCount]int
}

// Hours holds the hourly counts against the readings that were found, each counted once.
func (before Found) Hours(hours []Hour) (v Verdict) {
	const secondsAnHour = 3600
	want := map[Key][roomsensor.MetricCount]int{}
	for key, row := range before {
		hour := Key{key.Device, key.Bucket - key.Bucket%secondsAnHour}
		counts := want[hour]
		for _, m := range roomsensor.Metrics {
			if _, there := row.Values.Get(m); there {
				counts[m]++
			}
		}
		want[hour] = counts
	}
	for _, h := range hours {
		key := KeyOf(h.Device, h.Hour)
		counts := want[key]
		delete(want, key)
		for m, n := range h.Counts {
			h.compare(roomsensor.Metrics[m], n, counts[m], &v)
		}
	}
	for key, counts := range want {
		h := Hour{Device: key.Device, Hour: time.Unix(key.Bucket, 0)}
		for m, n := range counts {
			h.compare(roomsensor.Metrics[m], 0, n, &v)
		}
	}
	return v
}

func (h *Hour) compare(m roomsensor.Metric, counted, there int, v *Verdict) {
	at := roomsensor.FormatTime(h.Hour)
	switch {
	case counted > there:
		v.duplicated(counted-there, "%s of device %s in the hour %s counts %d and not %d", m, h.Device, at, counted, there)
	case counted < there:
		v.lost(there-counted, "%s of device %s in the hour %s counts %d and not %d", m, h.Device, at, counted, there)
	}
}
