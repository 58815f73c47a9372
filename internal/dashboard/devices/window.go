package devices

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/dashboard/page"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/roomsensor/aggregate"
)

const (
	// maxRawWindow is the longest window whose single readings are shown: 2,016 of them.
	maxRawWindow = 7 * 24 * time.Hour
	// maxChosenWindow is the longest window that a person may choose: 9,600 hours.
	maxChosenWindow = 400 * 24 * time.Hour
)

// deviceWindow is the window that the page of a device shows.
type deviceWindow struct {
	roomsensor.Window

	Range            string // one of deviceRanges; empty for a chosen window
	FromText, ToText string // the chosen window, as entered
	Hourly           bool   // whether hours are shown, not single readings
	Zone             *time.Location
	Paged            bool // whether the person turns the pages of the table
}

// deviceRange is a window that ends now.
type deviceRange struct {
	Key, Name string
	length    time.Duration
}

var deviceRanges = []deviceRange{
	{"24h", "24 hours", 24 * time.Hour}, {"7d", "7 days", maxRawWindow}, {"90d", "90 days", 90 * 24 * time.Hour},
}

// Ranges returns the windows that end now.
func (*deviceWindow) Ranges() []deviceRange { return deviceRanges }

// step returns the length of the buckets.
func (w *deviceWindow) step() time.Duration {
	if w.Hourly {
		return time.Hour
	}
	return roomsensor.BucketLength
}

// readWindow reads the window of the query: range, or from and to, which are local times. Without them, it is the
// last 24 hours.
func readWindow(v *page.Visit, errs page.FormErrors) deviceWindow {
	q := v.Echo.QueryParams()
	w := deviceWindow{
		FromText: q.Get("from"), ToText: q.Get("to"), Range: q.Get("range"), Zone: v.Zone(), Paged: q.Has("page"),
	}
	chosen := deviceRanges[0]
	for _, r := range deviceRanges {
		if r.Key == w.Range {
			chosen = r
		}
	}
	now := v.Now.UTC().Truncate(time.Second)
	if w.FromText == "" && w.ToText == "" {
		w.Range, w.Window = chosen.Key, roomsensor.Window{From: now.Add(-chosen.length), To: now}
		w.FromText, w.ToText = roomsensor.FormatLocal(w.From, v.Zone()), roomsensor.FormatLocal(w.To, v.Zone())
	} else {
		w.Range, w.Window = "", chosenWindow(v, &w, errs)
	}
	if w.Hourly = w.To.Sub(w.From) > maxRawWindow; w.Hourly {
		w.From = w.From.Truncate(time.Hour) // The first hour is whole.
	}
	return w
}

// chosenWindow parses the window that a person entered.
func chosenWindow(v *page.Visit, w *deviceWindow, errs page.FormErrors) (chosen roomsensor.Window) {
	var err error
	chosen.From, err = roomsensor.ParseLocal("from", w.FromText, v.Zone())
	errs.AddRule(err)
	chosen.To, err = roomsensor.ParseLocal("to", w.ToText, v.Zone())
	errs.AddRule(err)
	if len(errs) > 0 {
		return roomsensor.Window{}
	}
	switch {
	case chosen.Empty():
		errs.Add("to", "The end must be later than the beginning. Choose a later end.")
	case chosen.To.Sub(chosen.From) > maxChosenWindow:
		errs.Add("from", fmt.Sprintf("The window has more than %d days. Choose a later beginning or an earlier end.",
			maxChosenWindow/(24*time.Hour)))
	}
	return chosen
}

// deviceBucket is what a device measured in one bucket: a single reading, or an hour.
type deviceBucket struct {
	from    time.Time
	metrics [roomsensor.MetricCount]roomsensor.Summary
	delay   time.Duration // the longest one of the readings that arrived late; 0 if none did
}

// deviceBuckets reads the buckets of a window that have readings, the oldest first.
func (p *Pages) deviceBuckets(
	ctx context.Context, v *page.Visit, deviceID uuid.UUID, w *deviceWindow,
) (buckets []deviceBucket, err error) {
	if w.Hourly {
		buckets, err = p.hourBuckets(ctx, v, deviceID, w.Window)
	} else {
		buckets, err = p.readingBuckets(ctx, v, deviceID, w.Window)
	}
	if err != nil {
		return nil, err
	}
	slices.Reverse(buckets)
	late, err := p.backend.LateReadings(ctx, v.Team.ID, deviceID, w.Window, w.step())
	if err != nil {
		return nil, err
	}
	for i := range buckets {
		at, found := slices.BinarySearchFunc(late, buckets[i].from, func(l roomsensor.LateReadings, from time.Time) int {
			return l.From.Compare(from)
		})
		if found {
			buckets[i].delay = late[at].Delay
		}
	}
	return buckets, nil
}

// readingBuckets reads the readings of a window, the newest first.
func (p *Pages) readingBuckets(
	ctx context.Context, v *page.Visit, deviceID uuid.UUID, w roomsensor.Window,
) (buckets []deviceBucket, err error) {
	most := w.Buckets()
	err = p.backend.EachReading(ctx, v.Team.ID, deviceID, roomsensor.ReadingQuery{Window: w, Limit: most},
		func(r *roomsensor.Reading) {
			b := deviceBucket{from: r.BucketAt.UTC()}
			for _, m := range roomsensor.Metrics {
				if x, ok := r.Values.Get(m); ok {
					b.metrics[m] = roomsensor.Summary{Min: x, Max: x, Mean: x, Count: 1}
				}
			}
			buckets = append(buckets, b)
		})
	return buckets, err
}

// hourBuckets reads the hours of a window that have readings, the newest first.
func (p *Pages) hourBuckets(
	ctx context.Context, v *page.Visit, deviceID uuid.UUID, w roomsensor.Window,
) (buckets []deviceBucket, err error) {
	hours := aggregate.NewCalendar(aggregate.Hourly, time.UTC).Newest(w, int(maxChosenWindow/time.Hour)+2)
	for len(hours) > 0 {
		list, err := p.backend.DeviceAggregates(ctx, v.Team.ID, deviceID, aggregate.Query{
			Window: w, Buckets: hours, Now: v.Now,
		})
		if err != nil {
			return nil, err
		}
		for i := range list {
			b := deviceBucket{from: list[i].Bucket.From, metrics: list[i].Metrics}
			if b.metrics != [roomsensor.MetricCount]roomsensor.Summary{} {
				buckets = append(buckets, b)
			}
		}
		hours = hours[len(list):]
	}
	return buckets, nil
}
