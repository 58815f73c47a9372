package ingest

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
	"roomsensor/internal/roomsensor"
)

// guide is one of the pages for operators that speak of ingest.
func guide(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "operate", name))
	require.NoError(t, err)
	return string(text)
}

// rows are the cells of a guide's tables, without heads.
func rows(text string) (list [][]string) {
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

// The page on rejects tells of every reason, in the order in which the first of several is given.
func TestTheGuideTellsWhatToDoOnEveryReason(t *testing.T) {
	t.Parallel()
	var told []roomsensor.Reason
	for _, cells := range rows(guide(t, "rejects.md")) {
		if reason := strings.Trim(cells[0], "`"); len(cells) == 4 && reason != "reason" {
			told = append(told, roomsensor.Reason(reason))
			require.NotContains(t, cells, "", reason)
		}
	}
	require.Equal(t, roomsensor.Reasons, told)
}

var (
	metricName = regexp.MustCompile(`\broomsensor_[a-z_]+\b`)
	histogram  = regexp.MustCompile(`_(bucket|sum|count)$`)
	described  = regexp.MustCompile(`fqName: "([a-z_]+)"`)
)

// Operators alert and scale on what the guides name: it must be there.
func TestGuidesNameMetricsThatThereAre(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	NewWorker(WorkerConfig{Store: newMemoryStore(nil), Log: zerolog.Nop(), Metrics: registry})
	NewReceiver(ReceiverConfig{Keys: &keyShelf{}, Log: zerolog.Nop(), Metrics: registry})
	there := map[string]bool{}
	descriptions := make(chan *prometheus.Desc)
	go func() {
		defer close(descriptions)
		registry.Describe(descriptions)
	}()
	for d := range descriptions {
		there[described.FindStringSubmatch(d.String())[1]] = true
	}
	told := map[string]bool{}
	for _, name := range []string{"rejects.md", "scaling.md", "late-bursts.md"} {
		for _, metric := range metricName.FindAllString(guide(t, name), -1) {
			metric = histogram.ReplaceAllString(metric, "")
			require.True(t, there[metric], "%s names %s", name, metric)
			told[metric] = true
		}
	}
	for metric := range there {
		if strings.HasPrefix(metric, "roomsensor_queue_") || strings.HasPrefix(metric, "roomsensor_rejects_") {
			require.True(t, told[metric], "no guide tells of %s", metric)
		}
	}
}

// The numbers of the page on scaling are those of the code.
func TestTheGuideTellsWhatStaysConstant(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	text := guide(t, "scaling.md")
	require.Contains(t, text, fmt.Sprintf("at most %d MiB", maxMemory>>20))
	constants := map[string]string{}
	for _, cells := range rows(text) {
		constants[cells[0]] = cells[1]
	}
	for what, want := range map[string]string{
		"`AckWait`":                        fmt.Sprintf("%.0f s", queue.AckWait.Seconds()),
		"`MaxAckPending`":                  grouped(b.consumer(t).Config.MaxAckPending) + " uploads",
		"batches that a worker stores":     fmt.Sprint(DefaultWriters),
		"a batch":                          fmt.Sprintf("%s uploads, %s readings or %d MiB", grouped(capDeliveries), grouped(capReadings), capBytes>>20),
		"worth a transaction":              fmt.Sprintf("%s readings, or %d ms", grouped(flushReadings), flushAge.Milliseconds()),
		"requests of one credential":       fmt.Sprintf("%d a receiver", maxPerKey),
		"how old metrics of the queue are": fmt.Sprintf("%.0f s", watchEvery.Seconds()),
		"when they go":                     fmt.Sprintf("%.0f s", staleAfter.Seconds()),
		"how long a worker takes to leave": fmt.Sprintf("%.0f s", DefaultStopTimeout.Seconds()),
	} {
		require.Contains(t, constants[what], want, what)
	}
}

// grouped writes 50000 as 50,000.
func grouped(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", grouped(n/1000), n%1000)
}
