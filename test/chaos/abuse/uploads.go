package abuse

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"roomsensor/internal/retry"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/simulate"
)

const (
	// bodySize is below the limit of the receiver for a body, 16 MiB.
	bodySize = 15 << 20
	// uploadPause is the pause between two requests of a goroutine.
	uploadPause = 100 * time.Millisecond
)

// compressor is a gzip or zstd writer.
type compressor interface {
	io.WriteCloser
	Flush() error
}

// packed is a compressed body, in two parts: the receiver can decompress everything from the head, and waits for the
// rest.
type packed struct{ head, rest []byte }

// pack compresses a body of a size, which consists of copies of a pattern. Unless it is a multiple of the pattern, it
// ends in the middle of one, so that nothing of it is stored.
func pack(open func(io.Writer) (compressor, error), pattern string, size int) (p packed, err error) {
	var out bytes.Buffer
	w, err := open(&out)
	if err != nil {
		return p, err
	}
	part := []byte(strings.Repeat(pattern, max(1, (1<<20)/len(pattern))))
	for written := 0; written < size && err == nil; written += len(part) {
		_, err = w.Write(part[:min(len(part), size-written)])
	}
	if err == nil {
		err = w.Flush()
	}
	head := out.Len()
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return p, fmt.Errorf("compressing a body: %w", err)
	}
	return packed{out.Bytes()[:head], out.Bytes()[head:]}, nil
}

func (p *packed) body() io.Reader {
	return io.MultiReader(bytes.NewReader(p.head), bytes.NewReader(p.rest))
}

func gzipped(w io.Writer) (compressor, error) { return gzip.NewWriter(w), nil }

// windowed returns a zstd writer with a window size in bytes.
func windowed(size int) func(io.Writer) (compressor, error) {
	return func(w io.Writer) (compressor, error) {
		return zstd.NewWriter(w, zstd.WithWindowSize(size), zstd.WithEncoderConcurrency(1))
	}
}

// trickle is a body of which the head arrives at once, and then a byte of the rest per second, until ctx ends.
type trickle struct {
	ctx        context.Context //nolint:containedctx // A reader has no other way to end.
	head, rest []byte
}

func (t *trickle) Read(p []byte) (int, error) {
	if len(t.head) > 0 {
		n := copy(p, t.head)
		t.head = t.head[n:]
		return n, nil
	}
	if err := retry.Sleep(t.ctx, time.Second); err != nil || len(t.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p[:1], t.rest)
	t.rest = t.rest[n:]
	return n, nil
}

// upload returns one upload with n readings, each after a step.
func upload(hardwareID string, from time.Time, step time.Duration, n int) string {
	u := simulate.Upload{HardwareID: hardwareID, SentAt: from, Firmware: "6.6.6", LeaveOut: true}
	for i := range n {
		m := roomsensor.Measurement{MeasuredAt: from.Add(time.Duration(i) * step)}
		m.Values.Set(roomsensor.CO2, float32(400+i%1000))
		u.Readings = append(u.Readings, m)
	}
	return string(u.AppendJSON(nil)) + "\n"
}

func sendLines(t *target) (func(context.Context, *attacker), error) {
	lines, err := pack(gzipped, "1\n", bodySize)
	return func(ctx context.Context, w *attacker) {
		repeat(ctx, 4, uploadPause, func(ctx context.Context, _ int) {
			w.post(ctx, t.Credentials[0], "gzip", lines.body())
		})
	}, err
}

func sendBodies(t *target) (func(context.Context, *attacker), error) {
	const connections, plainSize = 128, 8 << 20
	line := upload(t.Units[0], t.History, roomsensor.BucketLength, 10)
	small, err := pack(gzipped, line, bodySize)
	plain := []byte(strings.Repeat(line, plainSize/len(line)))
	return func(ctx context.Context, w *attacker) {
		repeat(ctx, connections, uploadPause, func(ctx context.Context, i int) {
			switch i % 4 {
			case 0:
				w.post(ctx, t.Credentials[0], "gzip", &trickle{ctx, small.head, small.rest})
			case 1:
				w.post(ctx, t.Credentials[0], "", &trickle{ctx, plain, plain})
			case 2:
				w.post(ctx, t.Credentials[0], "", &trickle{ctx, nil, plain})
			default:
				w.post(ctx, t.Credentials[0], "gzip", small.body())
			}
		})
	}, err
}

func sendWindows(t *target) (func(context.Context, *attacker), error) {
	const connections, window = 64, 16 << 20
	line := upload(t.Units[0], t.History, roomsensor.BucketLength, 10)
	body, err := pack(windowed(window), line, bodySize)
	return func(ctx context.Context, w *attacker) {
		repeat(ctx, connections, uploadPause, func(ctx context.Context, i int) {
			if i%2 == 0 {
				w.post(ctx, t.Credentials[0], "zstd", &trickle{ctx, body.head, body.rest})
			} else {
				w.post(ctx, t.Credentials[0], "zstd", body.body())
			}
		})
	}, err
}

// sendFlood sends valid readings of all devices of the team, which are in a few chunks: in few large uploads, and in
// many small ones.
func sendFlood(t *target) (func(context.Context, *attacker), error) {
	from := t.History.Add(-20 * 24 * time.Hour)
	return flood(t, bodySize-roomsensor.MaxUploadBytes,
		func(i int) string { return upload(t.Units[i%len(t.Units)], from, roomsensor.BucketLength/2, 9000) },
		smallUploads(t))
}

// backlogSize is the size in bytes of a request of sendBacklog, which is small beside the backlog that a team may have.
const backlogSize = 4 << 20

// sendBacklog sends more than the backlog of a team before the rates of its credentials refuse it.
func sendBacklog(t *target) (func(context.Context, *attacker), error) {
	return flood(t, backlogSize, smallUploads(t))
}

// smallUploads returns uploads of 10 readings, of all devices of the team in turn.
func smallUploads(t *target) func(i int) string {
	from := t.History.Add(-20 * 24 * time.Hour)
	return func(i int) string { return upload(t.Units[i%len(t.Units)], from, roomsensor.BucketLength, 10) }
}

// sendUnknown sends uploads of units that are not registered. They become rejects, which the database cannot compress.
func sendUnknown(t *target) (func(context.Context, *attacker), error) {
	const padding = 300_000 // bytes, two characters each
	return flood(t, bodySize-roomsensor.MaxUploadBytes, func(i int) string {
		random := make([]byte, padding)
		_, _ = rand.Read(random) // It never returns an error.
		return fmt.Sprintf(`{"hardware_id":"dev:66%04d","readings":[{"measured_at":"%s","co2_ppm":400}],"padding":"%x"}`+"\n",
			i, roomsensor.FormatTime(t.History), random)
	})
}

// flood sends bodies of at least a size with all credentials, each of lines of one kind. They are compressed, so that
// the attacker costs little.
func flood(t *target, size int, kinds ...func(i int) string) (func(context.Context, *attacker), error) {
	var bodies []packed
	for _, line := range kinds {
		var lines strings.Builder
		for i := 0; lines.Len() < size; i++ {
			lines.WriteString(line(i))
		}
		body, err := pack(gzipped, lines.String(), lines.Len())
		if err != nil {
			return nil, err
		}
		bodies = append(bodies, body)
	}
	return func(ctx context.Context, w *attacker) {
		repeat(ctx, 4*len(t.Credentials), uploadPause, func(ctx context.Context, i int) {
			body := &bodies[i/len(t.Credentials)%len(bodies)]
			w.post(ctx, t.Credentials[i%len(t.Credentials)], "gzip", body.body())
		})
	}, nil
}

// sendPoison sends so many uploads that every batch of the workers has some.
func sendPoison(t *target) (func(context.Context, *attacker), error) {
	const each = 5
	return func(ctx context.Context, w *attacker) {
		n := 0
		repeat(ctx, 1, uploadPause, func(ctx context.Context, _ int) {
			var lines strings.Builder
			for range each {
				n++
				at := t.History.Add(time.Duration(n) * roomsensor.BucketLength)
				lines.WriteString(upload(t.Units[0], at, time.Minute, 1))
			}
			w.post(ctx, t.Credentials[0], "", strings.NewReader(lines.String()))
		})
	}, nil
}

// sendMessages sends messages of almost 1 MB to a source: as many measurements as it may have, one of very many
// members, lists in lists, and 900 unknown units.
func sendMessages(t *target) (func(context.Context, *attacker), error) {
	const size = 990_000
	list := func(first string, each func(i int) string) string {
		var text strings.Builder
		text.WriteString(first)
		for i := 0; text.Len() < size; i++ {
			if i > 0 {
				text.WriteByte(',')
			}
			text.WriteString(each(i))
		}
		return text.String()
	}
	messages := []string{
		list(`{"readings":[`, func(int) string { return `{"unit":"a","b":1234567}` }) + "]}",
		list(`{"unit":"a",`, func(i int) string { return fmt.Sprintf(`"%x":1`, i) }) + "}",
		strings.Repeat("[", size/2) + strings.Repeat("]", size/2),
		list(`{"readings":[`, func(i int) string {
			return fmt.Sprintf(`{"unit":"room %d","filler":"%01000d"}`, i, i)
		}) + "]}",
	}
	return func(ctx context.Context, w *attacker) {
		repeat(ctx, 4*len(t.Credentials), uploadPause, func(ctx context.Context, i int) {
			message := messages[i/len(t.Credentials)%len(messages)]
			w.postTo(ctx, "/sources/"+t.Team.String(), t.Credentials[i%len(t.Credentials)], "", strings.NewReader(message))
		})
	}, nil
}
