package wording

import (
	"cmp"
	"math"
	"strconv"
	"strings"
	"time"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/roomsensor/airquality"
)

// Format is how a person reads temperatures, times of day and dates. The zero value is °C, 24 hours and the day before
// the month.
type Format struct{ Fahrenheit, Hour12, MonthFirst bool }

// FormatOf returns the format of a person. What the person did not choose is as in the language that the browser asks
// for first (Accept-Language).
func FormatOf(chosen roomsensor.FormatChoice, languages string) Format {
	const american = "en-US"
	us := len(languages) >= len(american) && strings.EqualFold(languages[:len(american)], american)
	return Format{
		Fahrenheit: *cmp.Or(chosen.Fahrenheit, &us),
		Hour12:     *cmp.Or(chosen.Hour12, &us),
		MonthFirst: *cmp.Or(chosen.MonthFirst, &us),
	}
}

var (
	monthFirst = strings.NewReplacer("2 Jan 2006", "Jan 2, 2006", "2 Jan", "Jan 2")
	hour12     = strings.NewReplacer("15:04:05", "3:04:05 PM", "15:04", "3:04 PM")
)

// Time formats a time. The layout is one of the package time, with 24 hours and the day before the month, such as
// "Mon 2 Jan 2006, 15:04".
func (f Format) Time(at time.Time, layout string) string {
	if f.MonthFirst {
		layout = monthFirst.Replace(layout)
	}
	if f.Hour12 {
		layout = hour12.Replace(layout)
	}
	return at.Format(layout)
}

// Clock formats a time of day.
func (f Format) Clock(c roomsensor.Clock) string {
	return f.Time(time.Time{}.Add(time.Duration(c)*time.Minute), "15:04")
}

// Unit returns the unit of a metric.
func (f Format) Unit(m roomsensor.Metric) string {
	if m == roomsensor.Temp && f.Fahrenheit {
		return "°F"
	}
	return MetricTexts[m].Unit
}

// Convert returns a value of a metric in its Unit. A temperature in °F has at most three decimals, so that a limit has
// no digits that nobody entered.
func (f Format) Convert(m roomsensor.Metric, x float32) float32 {
	if m == roomsensor.Temp && f.Fahrenheit {
		return float32(math.Round((float64(x)*1.8+32)*1000) / 1000)
	}
	return x
}

// Number returns a value of a metric with its unit.
func (f Format) Number(m roomsensor.Metric, x float32) string {
	return f.Digits(m, x) + "\u00a0" + f.Unit(m) // No line break between them.
}

// Digits returns a value of a metric without its unit.
func (f Format) Digits(m roomsensor.Metric, x float32) string {
	return Digits(m, float64(f.Convert(m, x)))
}

// Digits returns a value of a metric that has the unit of a person already, without the unit.
func Digits(m roomsensor.Metric, x float64) string {
	text := strings.TrimPrefix(strconv.FormatFloat(x, 'f', MetricTexts[m].Decimals, 64), "-")
	if x < 0 && strings.ContainsAny(text, "123456789") {
		text = "−" + text
	}
	return text
}

// Limit returns a limit with its unit, in all its digits.
func (f Format) Limit(m roomsensor.Metric, x float32) string {
	x = f.Convert(m, x)
	return airquality.FormatLimit(&x) + "\u00a0" + f.Unit(m)
}
