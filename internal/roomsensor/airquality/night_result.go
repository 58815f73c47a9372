package airquality

import (
	"bytes"
	"cmp"
	"slices"
	"time"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/roomsensor/aggregate"
	"roomsensor/internal/roomsensor/completeness"
)

// NightQuery selects a night of a team.
type NightQuery struct {
	Window   roomsensor.Window
	Athletes bool // only their rooms
	Limits   *TeamLimits
	Now      time.Time

	ExternalRef *string           // that an assignment must have exactly; nil selects all
	Metadata    map[string]string // tags that its device must have
}

// NightQueries returns the queries of nights of a team.
func NightQueries(nights []Night, athletes bool, limits *TeamLimits, now time.Time) []NightQuery {
	queries := make([]NightQuery, len(nights))
	for i := range nights {
		queries[i] = NightQuery{Window: nights[i].Window, Athletes: athletes, Limits: limits, Now: now}
	}
	return queries
}

// NightRoom is the night of one assignment.
type NightRoom struct {
	NightResult

	Assignment roomsensor.Assignment
	DeviceName *string
	Limits     Limits // of the device
}

// NightResult is what was measured in the part of a night in an assignment.
type NightResult struct {
	Window            roomsensor.Window // the part of the night; it may be empty
	Expected, Present int               // 5-minute buckets
	Judged            int               // buckets with a verdict
	Warn, Bad         int               // buckets in which the room was at least stuffy, and bad
	Excess            float64           // sum of the values of CO₂ above its warn limit, less that limit
	CO2               [NightParts]Mean
	Metrics           [roomsensor.MetricCount]NightMetric
}

// NightParts is the number of equal parts of a night of which the mean of CO₂ is known.
const NightParts = 24

// Mean is the mean of some values.
type Mean struct {
	Sum   float64
	Count int
}

// Value returns the mean; NaN without a value.
func (m Mean) Value() float32 { return float32(m.Sum / float64(m.Count)) }

// NightMetric is what was measured of one metric.
type NightMetric struct {
	roomsensor.Summary

	Low, High Beyond
}

// Beyond counts the readings beyond the limits of one side. Those beyond the bad limit are beyond the warn limit too.
type Beyond struct{ Warn, Bad int }

func (b *Beyond) add(v Verdict) {
	if v >= Stuffy {
		b.Warn++
	}
	if v == Bad {
		b.Bad++
	}
}

// Minutes returns how long the metric was beyond the limit of a verdict, on either side.
func (n *NightMetric) Minutes(v Verdict) int {
	return int(Buckets(n.Low.At(v)+n.High.At(v)) / time.Minute)
}

// At returns the readings with at least a verdict.
func (b *Beyond) At(v Verdict) int {
	if v == Bad {
		return b.Bad
	}
	return b.Warn
}

// Add adds the part of the same night that the same person spent in another room.
func (r *NightResult) Add(o *NightResult) {
	if o.Window.Empty() {
		return
	}
	if r.Window.Empty() {
		*r = *o
		return
	}
	r.Window = roomsensor.Window{
		From: roomsensor.Earlier(r.Window.From, o.Window.From), To: roomsensor.Later(r.Window.To, o.Window.To),
	}
	r.Expected, r.Present, r.Judged = r.Expected+o.Expected, r.Present+o.Present, r.Judged+o.Judged
	r.Warn, r.Bad, r.Excess = r.Warn+o.Warn, r.Bad+o.Bad, r.Excess+o.Excess
	for i := range r.CO2 {
		r.CO2[i].Sum += o.CO2[i].Sum
		r.CO2[i].Count += o.CO2[i].Count
	}
	for m := range r.Metrics {
		r.Metrics[m].add(&o.Metrics[m])
	}
}

// add adds the readings of another room. Its mean is right within the rounding of the two.
func (n *NightMetric) add(o *NightMetric) {
	n.Low.Warn, n.Low.Bad = n.Low.Warn+o.Low.Warn, n.Low.Bad+o.Low.Bad
	n.High.Warn, n.High.Bad = n.High.Warn+o.High.Warn, n.High.Bad+o.High.Bad
	switch {
	case o.Count == 0:
	case n.Count == 0:
		n.Summary = o.Summary
	default:
		count := n.Count + o.Count
		n.Mean = float32((float64(n.Mean)*float64(n.Count) + float64(o.Mean)*float64(o.Count)) / float64(count))
		n.Min, n.Max, n.Count = min(n.Min, o.Min), max(n.Max, o.Max), count
	}
}

// The times from which a night has a verdict, and the part of the expected readings from which it can be good.
const (
	badFrom      = 30 * time.Minute
	stuffyFrom   = time.Hour
	goodCoverage = 0.8
)

// Verdict is the verdict on a night.
func (r *NightResult) Verdict() Verdict {
	switch {
	case Buckets(r.Bad) >= badFrom:
		return Bad
	case Buckets(r.Warn) >= stuffyFrom:
		return Stuffy
	case r.Judged == 0 || float64(r.Judged) < goodCoverage*float64(r.Expected):
		return Unknown
	}
	return Good
}

// AppendCoverage appends present / expected as Coverage.AppendRatio does.
func (r *NightResult) AppendCoverage(dst []byte) []byte {
	coverage := completeness.Coverage{Expected: r.Expected, Present: r.Present}
	return coverage.AppendRatio(dst)
}

// Buckets returns the time for which a number of readings stand.
func Buckets(readings int) time.Duration { return time.Duration(readings) * roomsensor.BucketLength }

// Cause is what a verdict is due to most.
type Cause struct {
	Metric roomsensor.Metric
	High   bool // above the limit, otherwise below it
	Limit  float32
	For    time.Duration
}

// Cause returns the side of a metric that was beyond the limit of a verdict for the longest time; ok is false if none
// was. The limits are those of the room.
func (r *NightResult) Cause(v Verdict, limits *Limits) (c Cause, ok bool) {
	for _, m := range roomsensor.Metrics {
		low, high := Buckets(r.Metrics[m].Low.At(v)), Buckets(r.Metrics[m].High.At(v))
		if at := limits[m].High.At(v); high > c.For && at != nil {
			c = Cause{m, true, *at, high}
		}
		if at := limits[m].Low.At(v); low > c.For && at != nil {
			c = Cause{m, false, *at, low}
		}
	}
	return c, c.For > 0
}

// others counts the readings of metrics other than CO₂ beyond a warn limit.
func (r *NightResult) others() (n int) {
	for _, m := range roomsensor.Metrics {
		if m != roomsensor.CO2 {
			n += r.Metrics[m].Low.Warn + r.Metrics[m].High.Warn
		}
	}
	return n
}

// Compare orders nights: the worst verdict first, then the most CO₂ above its warn limit, each minute weighted by how
// far, then the most minutes of other metrics, and athletes before places.
func (r *NightRoom) Compare(o *NightRoom) int {
	isPlace := func(room *NightRoom) int {
		if room.Assignment.Type == roomsensor.Athlete {
			return 0
		}
		return 1
	}
	return cmp.Or(
		cmp.Compare(o.Verdict().severity(), r.Verdict().severity()), cmp.Compare(o.Excess, r.Excess),
		cmp.Compare(o.others(), r.others()), cmp.Compare(isPlace(r), isPlace(o)))
}

// SortRooms sorts the rooms of a night: the worst first as in Compare, then by label in the order of names, by start
// and by id (A17.2).
func SortRooms(rooms []NightRoom, names func(a, b string) int) {
	slices.SortFunc(rooms, func(a, b NightRoom) int {
		if order := a.Compare(&b); order != 0 {
			return order
		}
		x, y := &a.Assignment, &b.Assignment
		return cmp.Or(names(x.Label, y.Label), x.StartedAt.Compare(y.StartedAt), bytes.Compare(x.ID[:], y.ID[:]))
	})
}

// NightTally counts the readings of one night in an assignment, each once and in any order.
type NightTally struct {
	night    roomsensor.Window
	expected roomsensor.Window
	limits   *Limits
	tally    aggregate.Tally
	result   NightResult
}

// NewNightTally returns a tally of the part of a night in an assignment of a device, with all installations in it.
func NewNightTally(
	q *NightQuery, a *roomsensor.Assignment, units []roomsensor.Installation, limits *Limits,
) *NightTally {
	window := q.Window.Intersect(a.Window())
	if window.Empty() {
		window.To = window.From
	}
	return &NightTally{
		night: q.Window, expected: completeness.Expected(window, units, q.Now), limits: limits,
		result: NightResult{Window: window},
	}
}

// Window returns the part of the night.
func (t *NightTally) Window() roomsensor.Window { return t.result.Window }

// Add adds a reading of the part of the night.
func (t *NightTally) Add(bucketAt time.Time, values *roomsensor.Values) {
	t.tally.Add(values, t.expected.Contains(bucketAt))
	r := &t.result
	air := t.limits.Judge(values, true)
	if air.Verdict != Unknown {
		r.Judged++
	}
	if air.Verdict >= Stuffy { // Most readings are good: a page of nights has 150,000.
		r.add(&air)
	}
	x, ok := values.Get(roomsensor.CO2)
	if !ok {
		return
	}
	part := &r.CO2[int(NightParts*bucketAt.Sub(t.night.From)/t.night.To.Sub(t.night.From))]
	part.Sum += float64(x)
	part.Count++
	if air.High[roomsensor.CO2] >= Stuffy {
		r.Excess += float64(x) - float64(*t.limits[roomsensor.CO2].High.Warn)
	}
}

// add counts a reading beyond a limit.
func (r *NightResult) add(air *Air) {
	r.Warn++
	if air.Verdict == Bad {
		r.Bad++
	}
	for m := range r.Metrics {
		r.Metrics[m].Low.add(air.Low[m])
		r.Metrics[m].High.add(air.High[m])
	}
}

// Result returns the result.
func (t *NightTally) Result() NightResult {
	total, _ := t.tally.Aggregate(t.result.Window, t.expected.Buckets()) // Readings determine it always.
	result := t.result
	result.Expected, result.Present = total.Expected, total.Present
	for m := range result.Metrics {
		result.Metrics[m].Summary = total.Metrics[m]
	}
	return result
}
