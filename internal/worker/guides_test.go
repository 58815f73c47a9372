package worker

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/queue"
	"roomsensor/internal/receiver"
	"roomsensor/internal/roomsensor"
)

// guide returns a page for operators.
func guide(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "operate", name))
	require.NoError(t, err)
	return string(text)
}

// tableCells returns the cells of the tables of a page, row by row.
func tableCells(text string) (list [][]string) {
	for line := range strings.Lines(text) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if strings.HasPrefix(line, "|") && !strings.HasPrefix(line, "|--") {
			for i := range cells {
				cells[i] = strings.TrimSpace(cells[i])
			}
			list = append(list, cells)
		}
	}
	return list
}

// The page on rejects explains every reason, in the order in which the first of several applies.
func TestRejectsGuide(t *testing.T) {
	t.Parallel()
	var found []roomsensor.Reason
	for _, cells := range tableCells(guide(t, "rejects.md")) {
		if reason := strings.Trim(cells[0], "`"); len(cells) == 4 && reason != "reason" {
			found = append(found, roomsensor.Reason(reason))
			require.NotContains(t, cells, "", reason)
		}
	}
	require.Equal(t, roomsensor.Reasons, found)
}

var (
	metricName = regexp.MustCompile(`\broomsensor_[a-z_]+\b`)
	// ofAPI matches a database role, and the metrics that only the API has.
	ofAPI     = regexp.MustCompile(`^roomsensor_(api$|api_|database_standby_)`)
	histogram = regexp.MustCompile(`_(bucket|sum|count)$`)
	described = regexp.MustCompile(`fqName: "([a-z_]+)"`)
)

// Operators alert and scale on the metrics that the guides name, so they must exist.
func TestMetricsInGuides(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	New(Config{Store: newMemoryStore(nil), Log: zerolog.Nop(), Metrics: registry})
	receiver.New(receiver.Config{Keys: keyStore{}, Log: zerolog.Nop(), Metrics: registry})
	exist := map[string]bool{}
	descriptions := make(chan *prometheus.Desc)
	go func() {
		defer close(descriptions)
		registry.Describe(descriptions)
	}()
	for d := range descriptions {
		exist[described.FindStringSubmatch(d.String())[1]] = true
	}
	for _, name := range []string{"rejects.md", "scaling.md", "late-bursts.md"} {
		for _, metric := range metricName.FindAllString(guide(t, name), -1) {
			if ofAPI.MatchString(metric) {
				continue
			}
			metric = histogram.ReplaceAllString(metric, "")
			require.True(t, exist[metric], "%s names %s", name, metric)
		}
	}
}

// The numbers of the page on scaling are those of the code.
func TestScalingGuide(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	text := guide(t, "scaling.md")
	constants := map[string]string{}
	for _, cells := range tableCells(text) {
		constants[cells[0]] = cells[1]
	}
	for what, want := range map[string]string{
		"`AckWait`":                             fmt.Sprintf("%.0f s", queue.AckWait.Seconds()),
		"`MaxAckPending`":                       grouped(e.consumer(t).Config.MaxAckPending) + " uploads",
		"concurrent batches per worker":         fmt.Sprint(writers),
		"largest batch":                         fmt.Sprintf("%s uploads, %s readings or %d MiB", grouped(capDeliveries), grouped(capReadings), capBytes>>20),
		"batch of the priority lane":            fmt.Sprintf("%d KiB of uploads, each with %d bytes", defaultLaneBytes>>10, laneUploadBytes),
		"flush threshold":                       fmt.Sprintf("%s readings, or %d ms", grouped(flushReadings), flushAge.Milliseconds()),
		"refresh interval of the queue metrics": fmt.Sprintf("%.0f s", watchEvery.Seconds()),
		"expiry of the queue metrics":           fmt.Sprintf("%.0f s", staleAfter.Seconds()),
		"shutdown timeout of a worker":          fmt.Sprintf("%.0f s", DefaultStopTimeout.Seconds()),
	} {
		require.Contains(t, constants[what], want, what)
	}
}

// grouped formats 50000 as 50,000.
func grouped(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", grouped(n/1000), n%1000)
}
