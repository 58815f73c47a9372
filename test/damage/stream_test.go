package damage

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/queue"
	"roomsensor/test/harness"
	"roomsensor/test/proctest"
)

// all reports whether every kind of damage is tried.
var all = os.Getenv("ROOMSENSOR_DAMAGE") == "all"

const (
	// uploads is the number of uploads in a stream with three blocks: one has 8 MB, which are about 140 uploads.
	uploads     = 300
	uploadBytes = 60_000
	// settledPart of the uploads are acknowledged by a worker.
	settledPart = 3
)

// anything is the log of NATS where it varies.
const anything = "[INF]"

// streamCase is damage to a stream, and what it does.
type streamCase struct {
	name   string
	killed bool // the server was killed before: its index of the blocks is of an earlier time
	damage func(f *files)
	lost   loss
	// Of the two checks of the service, those that notice it.
	shorter, stuck bool
	// log is what NATS logs; empty means nothing.
	log  string
	fast bool // is in the short form
}

// loss is which uploads the stream has no more.
type loss int

const (
	nothing    loss = iota
	oneUpload       // the one with the damage
	restBlock       // of a block, from the damage on
	everything      // of the stream
)

func streamCases() []streamCase {
	return []streamCase{
		{name: "nothing", lost: nothing},
		{name: "nothing, killed", killed: true, lost: nothing},
		{name: "a bit of an upload", damage: flipUpload("msgs/2.blk"), lost: oneUpload},
		{name: "a bit of an upload, killed", killed: true, damage: flipUpload("msgs/2.blk"), lost: restBlock},
		{
			name: "a bit of an upload in the last block, killed", killed: true, damage: flipUpload("msgs/3.blk"),
			lost: restBlock, shorter: true, fast: true,
		},
		{name: "the length of the first record", damage: flipLength("msgs/2.blk"), lost: restBlock, log: "corrupt record"},
		{name: "the tail of a block", damage: cut("msgs/2.blk", 1<<20), lost: restBlock, log: anything},
		{name: "the tail of the last block", damage: cut("msgs/3.blk", 100), lost: restBlock, log: "Stream state outdated"},
		{
			name: "the tail of the last block, killed", killed: true, damage: cut("msgs/3.blk", 100), lost: restBlock,
			shorter: true,
		},
		{name: "a block is gone", damage: remove("msgs/2.blk"), lost: restBlock, log: "could not locate msg block"},
		{name: "a bit of the index", damage: flip("msgs/index.db", 0, 1), lost: nothing, log: "checksum did not match"},
		{name: "the tail of the index", damage: cut("msgs/index.db", 20), lost: nothing, log: "checksum did not match"},
		{name: "the index is gone", damage: remove("msgs/index.db"), lost: nothing},
		{name: "the position of the workers is gone", damage: remove("obs/ingest/o.dat"), lost: nothing},
	}
}

// TestStream takes 10 seconds in its short form, and 40 with all kinds of damage.
func TestStream(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	s := newStream(t, uploads)
	for i, c := range streamCases() {
		if all || c.fast {
			t.Run(c.name, func(t *testing.T) { s.try(t, c, rand.New(rand.NewPCG(seed, uint64(i)))) })
		}
	}
}

// TestSmallStream loses all of a stream that has one block, as that of ten devices may: NATS counts from 1 again, and
// the workers get nothing until the stream is replayed.
func TestSmallStream(t *testing.T) {
	t.Parallel()
	newStream(t, uploads/10).try(t, streamCase{
		damage: flipLength("msgs/1.blk"), lost: everything, shorter: true, stuck: true, log: "corrupt record",
	}, nil)
}

// stream is a stopped server with uploads, whose files are copied for each kind of damage.
type stream struct {
	uploads         int
	server          *proctest.NATS
	dir             string // of the server
	log             bytes.Buffer
	conn            *queue.Conn
	js              jetstream.JetStream
	stopped, killed string // the files after each way to end
}

func newStream(t *testing.T, uploads int) *stream {
	t.Helper()
	s := &stream{uploads: uploads, dir: t.TempDir(), stopped: t.TempDir(), killed: t.TempDir()}
	program, err := proctest.Build(t.Context(), t.TempDir(), proctest.NATSServer)
	require.NoError(t, err)
	s.server, err = proctest.StartNATS(t.Context(), program, s.dir, &s.log)
	require.NoError(t, err)
	t.Cleanup(s.server.Kill)
	s.conn, err = queue.Connect(s.server.URL, "damage", zerolog.Nop())
	require.NoError(t, err)
	t.Cleanup(s.conn.Close)
	q := s.connect(t)
	require.NoError(t, q.DeclareMissing(t.Context()))
	s.js, err = jetstream.New(s.conn.Conn)
	require.NoError(t, err)
	for i := range uploads {
		sequences, err := q.Publish(t.Context(), []queue.Message{{HardwareID: "u", Text: text(i + 1)}})
		require.NoError(t, err)
		require.Equal(t, []uint64{uint64(i + 1)}, sequences)
	}
	s.server.Kill()
	streams := filepath.Join(s.dir, "jetstream")
	require.NoError(t, os.CopyFS(s.killed, os.DirFS(streams)))
	require.NoError(t, s.server.Restart(t.Context()))
	s.settle(t, q)
	_, err = s.server.Stop(harness.StopTimeout)
	require.NoError(t, err)
	require.NoError(t, os.CopyFS(s.stopped, os.DirFS(streams)))
	return s
}

// settle acknowledges the first uploads.
func (s *stream) settle(t *testing.T, q *queue.Queue) {
	t.Helper()
	require.NoError(t, harness.Await(t.Context(), time.Minute, 50*time.Millisecond, q.DeclareMissing))
	consumer, err := q.Consume(t.Context())
	require.NoError(t, err)
	defer consumer.Stop()
	for range s.uploads / settledPart {
		d, err := consumer.Next(t.Context())
		require.NoError(t, err)
		require.NoError(t, d.Ack())
	}
	require.NoError(t, q.Flush(t.Context()))
}

func text(sequence int) []byte {
	return fmt.Appendf(nil, "%d %s", sequence, strings.Repeat(string(rune('a'+sequence%26)), uploadBytes))
}

func (s *stream) try(t *testing.T, c streamCase, rng *rand.Rand) {
	t.Helper()
	from := s.stopped
	if c.killed {
		from = s.killed
	}
	q := s.connect(t)
	s.restart(t, q, from, nil)
	require.Zero(t, q.Cut())
	s.server.Kill()
	s.log.Reset()
	s.restart(t, q, from, func(f *files) {
		if c.damage != nil {
			f.rng = rng
			c.damage(f)
		}
	})
	defer s.server.Kill()
	stream, err := s.js.Stream(t.Context(), queue.StreamName)
	require.NoError(t, err)
	s.checkLoss(t, c, stream)
	s.checkNotice(t, c, stream.CachedInfo(), q)
	s.checkAfter(t, c, q)
}

// connect returns the queue of a process that has not seen the stream yet.
func (s *stream) connect(t *testing.T) *queue.Queue {
	t.Helper()
	q, err := queue.New(s.conn, queue.Config{Replicas: 1, MaxBytes: 1 << 30})
	require.NoError(t, err)
	return q
}

// restart starts the server, which reports that it is healthy, with files that are changed first, and lets a process
// check the stream.
func (s *stream) restart(t *testing.T, q *queue.Queue, from string, change func(*files)) {
	t.Helper()
	streams := filepath.Join(s.dir, "jetstream")
	require.NoError(t, os.RemoveAll(streams))
	require.NoError(t, os.CopyFS(streams, os.DirFS(from)))
	if change != nil {
		change(&files{t: t, dir: filepath.Join(streams, "$G", "streams", queue.StreamName)})
	}
	require.NoError(t, s.server.Restart(t.Context()))
	require.NoError(t, harness.Await(t.Context(), time.Minute, 50*time.Millisecond, q.DeclareMissing))
}

// checkLoss compares the stream with the uploads that it confirmed.
func (s *stream) checkLoss(t *testing.T, c streamCase, stream jetstream.Stream) {
	t.Helper()
	var missing []int
	for i := range s.uploads {
		message, err := stream.GetMsg(t.Context(), uint64(i+1))
		if err != nil {
			require.ErrorIs(t, err, jetstream.ErrMsgNotFound)
			missing = append(missing, i+1)
			continue
		}
		require.Equal(t, text(i+1), message.Data, "a damaged upload is never delivered")
	}
	t.Logf("%d of %d uploads lost %v", len(missing), s.uploads, missing[:min(1, len(missing))])
	switch c.lost {
	case nothing:
		require.Empty(t, missing)
	case oneUpload:
		require.Len(t, missing, 1)
	case restBlock:
		require.NotEmpty(t, missing)
		require.Equal(t, len(missing)-1, missing[len(missing)-1]-missing[0], "one range")
		require.Less(t, len(missing), s.uploads)
	case everything:
		require.Len(t, missing, s.uploads)
	}
}

// checkNotice compares what NATS and the service notice with the table.
func (s *stream) checkNotice(t *testing.T, c streamCase, info *jetstream.StreamInfo, q *queue.Queue) {
	t.Helper()
	require.Nil(t, info.State.Lost, "NATS reports no loss")
	warned := slices.DeleteFunc(strings.Split(s.log.String(), "\n"), func(line string) bool {
		return !strings.Contains(line, "[WRN]") || strings.Contains(line, "Healthcheck")
	})
	t.Logf("NATS logs %q", warned)
	switch c.log {
	case anything:
	case "":
		require.Empty(t, warned)
	default:
		require.Contains(t, strings.Join(warned, "\n"), c.log)
	}
	require.Equal(t, c.shorter, q.Cut() > 0)
	err := q.CheckPosition(t.Context())
	require.Equal(t, c.stuck, err != nil, "%v", err)
}

// checkAfter publishes an upload, which must be delivered: at once, or after a replay of the stream.
func (s *stream) checkAfter(t *testing.T, c streamCase, q *queue.Queue) {
	t.Helper()
	if c.stuck {
		require.NoError(t, q.Replay(t.Context(), nil))
		require.NoError(t, q.CheckPosition(t.Context()))
	}
	_, err := q.Publish(t.Context(), []queue.Message{{HardwareID: "u", Text: []byte("new")}})
	require.NoError(t, err)
	consumer, err := q.Consume(t.Context())
	require.NoError(t, err)
	defer consumer.Stop()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		d, err := consumer.Next(ctx)
		require.NoError(t, err, "the new upload is delivered")
		if string(d.Text) == "new" {
			return
		}
	}
}

// TestStreamSettings damages files without which NATS does not offer the stream, or the consumer of the workers.
func TestStreamSettings(t *testing.T) {
	t.Parallel()
	if !all {
		t.Skip("go tool task damage has it")
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	s := newStream(t, uploads)
	rng := rand.New(rand.NewPCG(seed, 0))
	for _, c := range []struct {
		name    string
		damage  func(*files)
		healthy bool
		err     string
		repair  []string // what the operator removes
	}{
		{"a bit of the settings of the stream", flip("meta.inf", 0, 1), false, "disappeared", nil},
		{"the tail of the settings of the stream", cut("meta.inf", 100), false, "disappeared", nil},
		{
			"a name in the settings of the consumer", func(f *files) {
				f.change("obs/ingest/meta.inf", func(data []byte) []byte {
					require.Contains(f.t, string(data), "replay_policy")
					return bytes.Replace(data, []byte("replay"), []byte("rexlay"), 1)
				})
			}, true, "finding the stream", []string{"obs/ingest/*"},
		},
		{
			"the tail of the position of the consumer", cut("obs/ingest/o.dat", 4), true, "creating store",
			[]string{"obs/ingest/*"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			q := s.connect(t)
			s.restart(t, q, s.stopped, nil)
			s.server.Kill()
			f := &files{t, rng, filepath.Join(s.dir, "jetstream", "$G", "streams", queue.StreamName)}
			before, err := os.ReadFile(filepath.Join(f.dir, "meta.inf"))
			require.NoError(t, err)
			c.damage(f)
			s.log.Reset()
			defer func() { s.server.Kill() }()
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			err = s.server.Restart(ctx)
			t.Logf("NATS is healthy: %v", err == nil)
			require.Equal(t, c.healthy, err == nil)
			err = harness.Await(t.Context(), 5*time.Second, 100*time.Millisecond, q.DeclareMissing)
			t.Logf("the service: %v", err)
			require.ErrorContains(t, err, c.err)
			s.server.Kill()
			if c.repair == nil {
				f.change("meta.inf", func([]byte) []byte { return before }) // From a backup.
			}
			for _, pattern := range c.repair {
				remove(pattern)(f)
				require.NoError(t, os.Remove(filepath.Join(f.dir, filepath.Dir(pattern))))
			}
			require.NoError(t, s.server.Restart(t.Context()))
			require.NoError(t, harness.Await(t.Context(), time.Minute, 50*time.Millisecond, q.DeclareMissing))
			stream, err := s.js.Stream(t.Context(), queue.StreamName)
			require.NoError(t, err)
			s.checkLoss(t, streamCase{lost: nothing}, stream)
		})
	}
}
