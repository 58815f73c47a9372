package airquality

import (
	"math"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"roomsensor/internal/roomsensor"
)

// Verdict is what the air of a room is like.
type Verdict uint8

// The verdicts. A higher one outweighs a lower one.
const (
	Unknown Verdict = iota // no value of a metric that has a limit
	Good
	Stuffy // beyond a warn limit
	Bad    // beyond a bad limit
)

// String returns a word such as "stuffy".
func (v Verdict) String() string { return [...]string{"unknown", "good", "stuffy", "bad"}[v] }

// severity orders lists: the worst first, and a room of which nothing is known before a good one.
func (v Verdict) severity() int { return [...]int{Unknown: 1, Good: 0, Stuffy: 2, Bad: 3}[v] }

// Bound has the limits of a metric on one side. A value that equals a limit is within it; nil means none. If Bad is
// set, Warn is too, and at most as far out.
type Bound struct{ Warn, Bad *float32 }

// above returns the verdict on a value for which the bound is an upper one.
func (b Bound) above(x float32) Verdict {
	switch {
	case b.Bad != nil && x > *b.Bad:
		return Bad
	case b.Warn != nil && x > *b.Warn:
		return Stuffy
	}
	return Good
}

// below returns the verdict on a value for which the bound is a lower one.
func (b Bound) below(x float32) Verdict {
	switch {
	case b.Bad != nil && x < *b.Bad:
		return Bad
	case b.Warn != nil && x < *b.Warn:
		return Stuffy
	}
	return Good
}

// At returns the limit beyond which the verdict begins; nil if there is none.
func (b Bound) At(v Verdict) *float32 {
	if v == Bad {
		return b.Bad
	}
	return b.Warn
}

// Limit is the range in which a metric is fine.
type Limit struct{ Low, High Bound }

// IsZero reports whether there is no limit.
func (l Limit) IsZero() bool { return l == Limit{} }

// Limits are those of all metrics. Those of sound count at night only.
type Limits [roomsensor.MetricCount]Limit

// DefaultLimits are those of a team that chose no others. The column teams.limits has the same default.
func DefaultLimits() Limits {
	bound := func(warn, bad float32) Bound { return Bound{&warn, &bad} }
	return Limits{
		roomsensor.CO2:      {High: bound(1000, 1400)},
		roomsensor.Temp:     {Low: bound(16, 14), High: bound(24, 27)},
		roomsensor.Humidity: {Low: Bound{Warn: new(float32(20))}, High: Bound{Warn: new(float32(70))}},
		roomsensor.Sound:    {High: bound(45, 55)},
	}
}

// Air is the verdict on the values of one room at one time, and how each metric contributes to it.
type Air struct {
	Verdict   Verdict
	Low, High [roomsensor.MetricCount]Verdict // Unknown without a value or without a limit
}

// Judge is the only rule for the verdict on air: the worst of all metrics that have a value and a limit.
func (l *Limits) Judge(values *roomsensor.Values, night bool) (a Air) {
	for _, m := range roomsensor.Metrics {
		x, ok := values.Get(m)
		if !ok || l[m].IsZero() || m == roomsensor.Sound && !night {
			continue
		}
		a.Low[m], a.High[m] = l[m].Low.below(x), l[m].High.above(x)
		a.Verdict = max(a.Verdict, a.Low[m], a.High[m])
	}
	return a
}

// Of returns the verdict on one metric.
func (a *Air) Of(m roomsensor.Metric) Verdict { return max(a.Low[m], a.High[m]) }

// NewLimit parses the limits of a metric; an empty text means no limit. A bad limit without a warn limit is both.
func NewLimit(m roomsensor.Metric, lowBad, lowWarn, highWarn, highBad string) (l Limit, err error) {
	for _, end := range []struct {
		to   **float32
		text string
	}{{&l.Low.Bad, lowBad}, {&l.Low.Warn, lowWarn}, {&l.High.Warn, highWarn}, {&l.High.Bad, highBad}} {
		if *end.to, err = parseEnd(m, end.text); err != nil {
			return Limit{}, err
		}
	}
	for _, b := range []*Bound{&l.Low, &l.High} {
		if b.Warn == nil {
			b.Warn = b.Bad
		}
	}
	var last *float32
	for _, x := range []*float32{l.Low.Bad, l.Low.Warn, l.High.Warn, l.High.Bad} {
		if x == nil {
			continue
		}
		if last != nil && *x < *last {
			return Limit{}, roomsensor.Invalid(m.String(), "Enter the limits in this order, from the lowest to the highest: "+
				"bad below, warn below, warn above, bad above.")
		}
		last = x
	}
	if low, high := l.Low.Warn, l.High.Warn; low != nil && high != nil && *low == *high {
		return Limit{}, roomsensor.Invalid(m.String(), "The lowest value must be less than the highest one.")
	}
	return l, nil
}

func parseEnd(m roomsensor.Metric, text string) (*float32, error) {
	if text == "" {
		return nil, nil //nolint:nilnil // An empty text is no end.
	}
	least, greatest := m.Range()
	x, err := strconv.ParseFloat(strings.Replace(text, ",", ".", 1), 32)
	if err != nil || math.IsNaN(x) || x < least || x > greatest {
		return nil, roomsensor.Invalid(m.String(), "Enter a number from "+strconv.FormatFloat(least, 'f', -1, 64)+" to "+
			strconv.FormatFloat(greatest, 'f', -1, 64)+", such as 26.5, or nothing for no limit.")
	}
	return new(float32(x) + 0), nil // -0 + 0 is 0.
}

// ParseLimit parses the form LOW..HIGH, of which either end may be missing. Each end is WARN/BAD, a number for both, or
// WARN/ for a limit that is never bad.
func ParseLimit(m roomsensor.Metric, text string) (Limit, error) {
	low, high, ok := strings.Cut(text, "..")
	if !ok {
		return Limit{}, roomsensor.Invalid(m.String(), "Limits have the form LOW..HIGH, and each end the form "+
			"WARN/BAD, such as 16/14..24/27. One number is both, and 20/ only warns. Leave out an end for no limit: "+
			"..1000/1400 or .. alone.")
	}
	both := func(end string) (warn, bad string) {
		warn, bad, separate := strings.Cut(end, "/")
		if !separate {
			bad = warn
		}
		return warn, bad
	}
	lowWarn, lowBad := both(low)
	highWarn, highBad := both(high)
	return NewLimit(m, lowBad, lowWarn, highWarn, highBad)
}

// String returns the form of ParseLimit.
func (l Limit) String() string { return l.Low.String() + ".." + l.High.String() }

// String returns an end in the form of ParseLimit.
func (b Bound) String() string {
	switch {
	case b.Warn == nil:
		return ""
	case b.Bad != nil && *b.Warn == *b.Bad:
		return FormatLimit(b.Warn)
	}
	return FormatLimit(b.Warn) + "/" + FormatLimit(b.Bad)
}

// FormatLimit returns a limit as people enter it; no limit is an empty text.
func FormatLimit(x *float32) string {
	if x == nil {
		return ""
	}
	return string(roomsensor.AppendNumber(nil, *x))
}

// LimitRule replaces the limit of one metric for one device, or for the devices with a tag.
type LimitRule struct {
	DeviceID uuid.UUID // uuid.Nil for a rule about a tag
	Tag      string    // KEY=VALUE; empty for a rule about a device
	Metric   roomsensor.Metric
	Limit    Limit
}

// MaxLimitRules is how many rules a team has at most.
const MaxLimitRules = 50

// TeamLimits are the limits of a team.
type TeamLimits struct {
	Limits             // of all rooms
	Rules  []LimitRule // at most MaxLimitRules
}

// For returns the limits of a device: for each metric that of its own rule, otherwise that of the first rule about one
// of its tags, otherwise that of the team.
func (t *TeamLimits) For(deviceID uuid.UUID, tags map[string]string) Limits {
	limits := t.Limits
	var own, tagged [roomsensor.MetricCount]bool
	for i := range t.Rules {
		r := &t.Rules[i]
		if r.DeviceID != uuid.Nil {
			if r.DeviceID == deviceID {
				limits[r.Metric], own[r.Metric] = r.Limit, true
			}
			continue
		}
		key, value, _ := strings.Cut(r.Tag, "=")
		if has, ok := tags[key]; ok && has == value && !own[r.Metric] && !tagged[r.Metric] {
			limits[r.Metric], tagged[r.Metric] = r.Limit, true
		}
	}
	return limits
}
