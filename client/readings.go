package client

import (
	"context"
	"fmt"
	"iter"
	"net/url"
	"strconv"
	"time"

	"github.com/google/uuid"
)

// Window is a period of time, from its start to before its end. The zero Window is the default of the endpoint, for
// readings the last 24 hours. At most 90 days are allowed, except for a whole assignment.
type Window struct {
	From time.Time // start; the zero time means not set
	To   time.Time // end, exclusive; the zero time means now if From is set
	// Last is the length of a window that ends now, in whole minutes. The service ignores From and To beside it.
	Last time.Duration
	// Assignment restricts the window to that of an assignment. Alone, it selects the whole assignment.
	Assignment uuid.UUID
}

// Last returns the window that ends now and has a length in whole minutes.
func Last(length time.Duration) Window { return Window{Last: length} }

// Between returns the window from a start to before an end.
func Between(from, to time.Time) Window { return Window{From: from, To: to} }

// add adds the window to the parameters of a request.
func (w Window) add(v url.Values) error {
	if !w.From.IsZero() {
		v.Set("from", formatTime(w.From))
	}
	if !w.To.IsZero() {
		v.Set("to", formatTime(w.To))
	}
	if w.Assignment != uuid.Nil {
		v.Set("assignment_id", w.Assignment.String())
	}
	return addMinutes(v, "last", w.Last)
}

// addMinutes adds a length of time, unless it is 0.
func addMinutes(v url.Values, name string, d time.Duration) error {
	if d%time.Minute != 0 {
		return fmt.Errorf("%s must be whole minutes, and it is %s", name, d)
	}
	if d != 0 {
		v.Set(name, strconv.FormatInt(int64(d/time.Minute), 10)+"m")
	}
	return nil
}

// formatTime prints a time as the service reads it: UTC, with at most microseconds.
func formatTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.999999Z") }

// Metric is the name of a metric.
type Metric string

// The metrics.
const (
	CO2PPM      Metric = "co2_ppm"      // parts per million
	TempC       Metric = "temp_c"       // degrees Celsius
	HumidityPct Metric = "humidity_pct" // relative humidity in percent
	Lux         Metric = "lux"          // light
	SPLDB       Metric = "spl_db"       // sound level in dB
)

// ReadingQuery selects readings of one device.
type ReadingQuery struct {
	Window Window
	// PageSize is the number of readings per request, at most 1000. 0 means 1000.
	PageSize int
}

// Readings returns the readings of a device, newest first. Readings that arrive meanwhile do not repeat or skip others.
func (c *Client) Readings(ctx context.Context, device uuid.UUID, q ReadingQuery) iter.Seq2[Reading, error] {
	v := url.Values{}
	err := q.Window.add(v)
	addLimit(v, q.PageSize)
	return list[Reading](ctx, c, devicePath(device)+"/readings", v, err)
}
