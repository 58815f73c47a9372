package world

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	faultTrial  = flag.Bool("faults", false, "run TestDeliberateFaults, which compiles the product with each fault")
	faultSeeds  = flag.Uint64("fault-seeds", 5000, "seeds within which each fault must be found")
	foundBySeed = regexp.MustCompile(`(?m)^seed (\d+) trace .* failed true$`)
)

// fault is a deliberate fault: a change of one file of the product.
type fault struct {
	what   string
	file   string
	change []string // old text and new text, in turn
	test   string   // that finds it; empty means TestSeeds
	missed bool     // by `go tool task chaos`, because its stream is never full and its clocks are right
}

const (
	readingsSQL = "db/readings.sql.go"
	onlyIfValue = "THEN excluded.ingested_at ELSE r.ingested_at END"
)

var faults = []fault{
	{what: "acknowledges before the commit", file: "internal/worker/worker.go", change: []string{
		"stop := extendWhile(ctx, b)\n",
		"for _, d := range b.deliveries { _ = d.message.Ack() }\nstop := extendWhile(ctx, b)\n",
	}},
	{what: "acknowledges what the database refused", file: "internal/worker/worker.go", change: []string{
		"if !results[i].stored {", "if false {",
	}},
	{what: "takes a failed transaction for a commit", file: "internal/worker/write.go", change: []string{
		"part[i].stored = err == nil", "part[i].stored = true",
	}},
	{what: "acknowledges a redelivery without storing it", file: "internal/worker/worker.go", change: []string{
		"w.backlog.observe(next)\n", "w.backlog.observe(next)\nif next.Deliveries > 1 { _ = next.Ack(); continue }\n",
	}},
	{what: "drops rejects", file: "internal/worker/write.go", change: []string{
		"b.Seen, b.Rejects = mergeHeartbeats(seen), rejects\n", "b.Seen, b.Rejects = mergeHeartbeats(seen), rejects[:0]\n",
	}},
	{what: "drops the reject of a refused reading", file: "internal/worker/write.go", change: []string{
		"r.rejectRefused(refused, cause)", "_ = cause",
	}},
	{what: "confirms without the stream", file: "internal/queue/publish.go", change: []string{
		"err = cmp.Or(err, p.confirm())", "err = cmp.Or(err, p.confirm(), nil)\nerr = nil",
	}},
	{what: "confirms before the stream does", file: "internal/queue/publish.go", change: []string{
		"for len(p.sent) > 0 {\n\t\terr", "for false {\n\t\terr",
	}},
	{what: "lets a null erase a value in a batch", file: "internal/roomsensor/reading.go", change: []string{
		"if !ok {\n\t\t\tcontinue\n\t\t}\n\t\tif ours, ok := a.Values.Get(m); !ok || theirs > ours {",
		"if !ok {\n\t\t\treturn b\n\t\t}\n\t\tif ours, ok := a.Values.Get(m); !ok || theirs > ours {",
	}},
	{what: "keeps the earlier measurement of a bucket in a batch", file: "internal/roomsensor/reading.go", change: []string{
		"case a.MeasuredAt.After(b.MeasuredAt):\n\t\treturn a\n\tcase b.MeasuredAt.After(a.MeasuredAt):\n\t\treturn b",
		"case a.MeasuredAt.After(b.MeasuredAt):\n\t\treturn b\n\tcase b.MeasuredAt.After(a.MeasuredAt):\n\t\treturn a",
	}},
	{what: "moves last_seen_at back in a batch", file: "internal/worker/write.go", change: []string{
		"if from.LastSeenAt.After(into.LastSeenAt) {", "if from.LastSeenAt.Before(into.LastSeenAt) {",
	}},
	{what: "takes the time of a delivery for the arrival", file: "internal/queue/consume.go", change: []string{
		"At: stored.UTC().Truncate(time.Microsecond)", "At: time.Now().UTC().Truncate(time.Microsecond)",
	}},
	{what: "renews ingested_at", file: readingsSQL, test: "TestTables", change: []string{
		onlyIfValue, "THEN excluded.ingested_at ELSE excluded.ingested_at END",
	}},
	{what: "lets a null erase a stored value", file: readingsSQL, test: "TestTables", change: []string{
		"ELSE greatest(r.co2_ppm, excluded.co2_ppm) END,", "ELSE excluded.co2_ppm END,",
	}},
	{what: "moves a stored last_seen_at back", file: "db/devices.sql.go", test: "TestTables", change: []string{
		"SET last_seen_at = greatest(s.last_seen_at, u.seen_at)", "SET last_seen_at = coalesce(u.seen_at, s.last_seen_at)",
	}},
	{what: "purges a full stream of what is not stored", file: "internal/queue/purge.go", missed: true, change: []string{
		"min(p.floor, p.state.LastSeq)+1", "p.state.LastSeq+1",
	}},
	{what: "purges old uploads that are not stored", file: "internal/queue/purge.go", missed: true, change: []string{
		"from, to := p.state.FirstSeq, p.end()", "from, to := p.state.FirstSeq, p.state.LastSeq+1",
		"end <= p.state.FirstSeq || end > p.end()", "end <= p.state.FirstSeq",
	}},
	{what: "calls an upload without a confirmation refused", file: "internal/receiver/uploads.go", change: []string{
		"errors.Is(err, queue.ErrBacklog)", "errors.Is(err, queue.ErrBacklog) || !errors.Is(err, nats.ErrMaxPayload)",
	}},
	{what: "rejects a transaction without an answer", file: "internal/worker/write.go", change: []string{
		`return fmt.Errorf("%w: %w", roomsensor.ErrRefused, err)`, `return fmt.Errorf("%w: %w", roomsensor.ErrNotStorable, err)`,
	}},
}

// TestDeliberateFaults compiles the product with each fault, and runs seeds until one finds it.
func TestDeliberateFaults(t *testing.T) {
	if !*faultTrial {
		t.Skip("it compiles the product 19 times: run `go tool task simulate-world-faults`")
	}
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	t.Parallel()
	for i := range faults {
		f := &faults[i]
		t.Run(f.what, func(t *testing.T) { t.Log(find(t, root, f)) })
	}
}

// find returns what found a fault.
func find(t *testing.T, root string, f *fault) string {
	t.Helper()
	program := f.compile(t, root)
	if f.test != "" {
		output, err := execute(t, program, "-test.run=^"+f.test+"$")
		require.Error(t, err, "%s passes:\n%s", f.test, output)
		require.Contains(t, output, "batch ")
		return f.test
	}
	output, _ := execute(t, program, "-test.run=^TestSeeds$", "-part", fmt.Sprint("-seeds=", *faultSeeds))
	found := foundBySeed.FindStringSubmatch(output)
	require.NotNil(t, found, "no seed finds the fault:\n%.2000s", output)
	_, verdict, _ := strings.Cut(output, "world_test.go:")
	return fmt.Sprintf("seed %s, %.150q", found[1], verdict)
}

func execute(t *testing.T, program string, arguments ...string) (output string, err error) {
	t.Helper()
	text, err := exec.CommandContext(t.Context(), program, arguments...).CombinedOutput()
	return string(text), err
}

// compile returns the tests of this package with the fault.
func (f *fault) compile(t *testing.T, root string) (program string) {
	t.Helper()
	dir, original := t.TempDir(), filepath.Join(root, f.file)
	source, err := os.ReadFile(original)
	require.NoError(t, err)
	text := string(source)
	for i := 0; i < len(f.change); i += 2 {
		require.Contains(t, text, f.change[i], "the fault must change %s", f.file)
		text = strings.ReplaceAll(text, f.change[i], f.change[i+1])
	}
	changed, overlay := filepath.Join(dir, "changed.go"), filepath.Join(dir, "overlay.json")
	require.NoError(t, os.WriteFile(changed, []byte(text), 0o600)) //nolint:gosec // In a directory of the test.
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {original: changed}})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(overlay, replace, 0o600))
	program = filepath.Join(dir, "world.test")
	build := exec.CommandContext(context.WithoutCancel(t.Context()),
		"go", "test", "-c", "-vet=off", "-overlay="+overlay, "-o", program, ".")
	output, err := build.CombinedOutput()
	require.NoError(t, err, string(output))
	return program
}
