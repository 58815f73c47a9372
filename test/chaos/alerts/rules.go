package alerts

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

// In the trial a second stands for a minute: Prometheus scrapes every second, and not every 15 seconds.
const (
	shorter = int64(time.Minute / time.Second)
	// minRange has as many scrapes as the shortest range of the rules, 5 minutes, has in production.
	minRange = 15 * time.Second
	// maxTime bounds the long times, up to a day, so that the trial ends within half an hour.
	maxTime = 30 * time.Second
	minFor  = time.Second
)

// shorten returns a time of a rule for the trial, at least the minimum.
func shorten(d, least time.Duration) time.Duration {
	return min(max(d/time.Duration(shorter), least), maxTime)
}

var (
	alertLine  = regexp.MustCompile(`^ *- alert: (\w+)$`)
	forLine    = regexp.MustCompile(`^( *for: )(\d+[smhd])$`)
	timeOfPast = regexp.MustCompile(`(\[|offset )(\d+[smhd])`)
)

// shortenRules returns the text of the rules for the trial, in which `for`, ranges and offsets are shortened.
func shortenRules(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		if m := forLine.FindStringSubmatch(strings.TrimSuffix(line, "\n")); m != nil {
			line = m[1] + shorten(parseDuration(m[2]), minFor).String() + "\n"
		}
		if !strings.Contains(line, "summary:") {
			line = shortenQuery(line)
		}
		out.WriteString(line)
	}
	return out.String()
}

// shortenQuery shortens the ranges and offsets of a query, as shortenRules does.
func shortenQuery(query string) string {
	return timeOfPast.ReplaceAllStringFunc(query, func(match string) string {
		m := timeOfPast.FindStringSubmatch(match)
		return m[1] + shorten(parseDuration(m[2]), minRange).String()
	})
}

// parseDuration reads a number with one unit of Prometheus, which the patterns above guarantee.
func parseDuration(text string) time.Duration {
	units := map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour}
	last := len(text) - 1
	n, _ := strconv.Atoi(text[:last]) // The patterns match digits only.
	return time.Duration(n) * units[text[last]]
}

// alertNames lists the alerts of the rules in order.
func alertNames(text string) (names []string) {
	for line := range strings.Lines(text) {
		if m := alertLine.FindStringSubmatch(strings.TrimSuffix(line, "\n")); m != nil {
			names = append(names, m[1])
		}
	}
	return names
}
