package alerts

import (
	"fmt"
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

// exception is a threshold that the trial changes, because its fault would need more time than a test has.
type exception struct{ alert, from, to, reason string }

// exceptions are all changes of the rules beside `for` and ranges.
var exceptions = []exception{
	{"RoomsensorExportRunsLong", "> 3600", "> 60", "the export would have to run for an hour"},
	{"RoomsensorTablesLate", "> 600", "> 10", "the database would have to be unavailable for 10 minutes"},
	{"RoomsensorStatisticsOld", "> 1800", "> 30", "the figures would have to be half an hour old; the processes are " +
		"built with the tag alerts and read them every 5 seconds, not every 5 minutes"},
	{"RoomsensorHighDeliveries", "> 25", "> 4", "25 deliveries take 11 minutes, because the delay between them grows to " +
		"30 seconds; PARK_AFTER is lowered to 6, from 50"},
	{"RoomsensorHighDeliveries", "for: 5s", "for: 70s", "its metric is the maximum of the last minute, which is " +
		"not shortened"},
}

var (
	alertLine  = regexp.MustCompile(`^ *- alert: (\w+)$`)
	forLine    = regexp.MustCompile(`^( *for: )(\d+[smhd])$`)
	timeOfPast = regexp.MustCompile(`(\[|offset )(\d+[smhd])`)
)

// shortenRules returns the text of the rules for the trial: `for` and ranges are shortened, and the exceptions applied.
// It returns an error if an exception no longer fits its rule.
func shortenRules(text string) (string, error) {
	applied := make([]bool, len(exceptions))
	var out strings.Builder
	alert := ""
	for line := range strings.Lines(text) {
		if m := alertLine.FindStringSubmatch(strings.TrimSuffix(line, "\n")); m != nil {
			alert = m[1]
		}
		if m := forLine.FindStringSubmatch(strings.TrimSuffix(line, "\n")); m != nil {
			line = m[1] + shorten(parseDuration(m[2]), minFor).String() + "\n"
		}
		if !strings.Contains(line, "summary:") {
			line = shortenQuery(line)
			for i, e := range exceptions {
				if e.alert == alert && strings.Contains(line, e.from) {
					line = strings.Replace(line, e.from, e.to, 1)
					applied[i] = true
				}
			}
		}
		out.WriteString(line)
	}
	for i, e := range exceptions {
		if !applied[i] {
			return "", fmt.Errorf("the rule of %s has no %q to replace", e.alert, e.from)
		}
	}
	return out.String(), nil
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
