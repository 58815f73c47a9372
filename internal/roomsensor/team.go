package roomsensor

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
)

// Team owns devices and keys (spec 2, Team). Nothing of one team is visible to another.
type Team struct {
	ID   uuid.UUID
	Name string
}

// TeamSettings are a team and what people set for it.
type TeamSettings struct {
	ID         uuid.UUID
	Name       string
	TimeZone   *time.Location // never nil
	Night      NightHours
	Thresholds Thresholds
}

// Thresholds are the ranges in which a team wants the metrics to be.
type Thresholds [MetricCount]Threshold

// Threshold is the range in which a metric is fine, both ends included. A nil end is unbounded.
type Threshold struct{ Low, High *float32 }

// DefaultThresholds are those of a team that chose no others. Migration 00028 has the same.
func DefaultThresholds() Thresholds {
	return Thresholds{
		CO2:      {High: new(float32(1200))},
		Temp:     {Low: new(float32(16)), High: new(float32(26))},
		Humidity: {Low: new(float32(30)), High: new(float32(65))},
		Sound:    {High: new(float32(45))},
	}
}

// NewThreshold parses the ends of a threshold; an empty text means no end.
func NewThreshold(m Metric, low, high string) (t Threshold, err error) {
	if t.Low, err = parseEnd(m, low); err != nil {
		return Threshold{}, err
	}
	if t.High, err = parseEnd(m, high); err != nil {
		return Threshold{}, err
	}
	if t.Low != nil && t.High != nil && *t.Low >= *t.High {
		return Threshold{}, Invalid(m.String(), "The lowest value must be less than the highest one.")
	}
	return t, nil
}

func parseEnd(m Metric, text string) (*float32, error) {
	if text == "" {
		return nil, nil //nolint:nilnil // An empty text is no end.
	}
	least, greatest := m.Range()
	x, err := strconv.ParseFloat(text, 32)
	if err != nil || math.IsNaN(x) || x < least || x > greatest {
		return nil, Invalid(m.String(), "Enter a number from "+strconv.FormatFloat(least, 'f', -1, 64)+" to "+
			strconv.FormatFloat(greatest, 'f', -1, 64)+" with a decimal point, or nothing for no limit.")
	}
	return new(float32(x) + 0), nil // -0 + 0 is 0.
}

// ParseThreshold parses the form LOW..HIGH, of which either end may be missing.
func ParseThreshold(m Metric, text string) (Threshold, error) {
	low, high, ok := strings.Cut(text, "..")
	if !ok {
		return Threshold{}, Invalid(m.String(),
			"A threshold has the form LOW..HIGH, such as 16..26. Leave out an end for no limit: ..1200, 16.. or .. alone.")
	}
	return NewThreshold(m, low, high)
}

// IsZero reports whether the threshold has no end.
func (t Threshold) IsZero() bool { return t.Low == nil && t.High == nil }

// String returns the form LOW..HIGH.
func (t Threshold) String() string { return FormatLimit(t.Low) + ".." + FormatLimit(t.High) }

// FormatLimit returns an end of a threshold as people enter it; no end is an empty text.
func FormatLimit(x *float32) string {
	if x == nil {
		return ""
	}
	return string(AppendNumber(nil, *x))
}

// IsBelow reports whether a value is below the low end.
func (t Threshold) IsBelow(x float32) bool { return t.Low != nil && x < *t.Low }

// IsAbove reports whether a value is above the high end.
func (t Threshold) IsAbove(x float32) bool { return t.High != nil && x > *t.High }
