package nights

import (
	"fmt"
	"strings"

	"roomsensor/internal/roomsensor/airquality"
	"roomsensor/internal/wording"
)

// stripHeight is the height of the strip of a room.
const stripHeight = 20

// nightBar is one night in the strip of a room. Its height and its outline show the verdict without its color.
type nightBar struct {
	X, Y, Height int
	Class, Text  string
}

// barHeights are the heights of the bars by verdict.
var barHeights = [...]int{airquality.Unknown: 8, airquality.Good: 5, airquality.Stuffy: 12, airquality.Bad: stripHeight}

// nightBars returns the strip of a room, the oldest night first, and its text alternative.
func nightBars(
	f wording.Format, nights []airquality.Night, results []airquality.NightResult,
) (bars []nightBar, summary string) {
	const pitch = 7
	counts := map[string]int{}
	for i := range nights {
		n := len(nights) - 1 - i
		r := &results[n]
		bar := nightBar{X: pitch * i, Y: stripHeight - 1, Height: 1, Class: "off", Text: "not assigned"}
		if r.Expected > 0 {
			verdict := wording.VerdictTextOf(r.Verdict())
			bar.Class, bar.Text = verdict.Key, strings.ToLower(verdict.Text)
			bar.Height = barHeights[r.Verdict()]
			bar.Y = stripHeight - bar.Height
		}
		counts[bar.Text]++
		bar.Text = f.Time(nights[n].Date, "Mon 2 Jan") + ": " + bar.Text
		bars = append(bars, bar)
	}
	summary = wording.Plural(len(nights), "night") + " before"
	separator := ": "
	for _, word := range []string{"bad", "stuffy", "good", "unknown", "not assigned"} {
		if counts[word] > 0 {
			summary += fmt.Sprintf("%s%d %s", separator, counts[word], word)
			separator = ", "
		}
	}
	return bars, summary
}
