package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"
	"golang.org/x/sync/semaphore"

	"roomsensor/internal/retry"
)

// A team must not fill the stream with uploads that no worker has stored: a full stream refuses those of all teams.
// Each receiver therefore bounds what it published for a team and what still waits for a worker (decision 53 d).
const (
	// backlogPart is the part of the stream that the backlog of a team may take.
	backlogPart = 16
	// unboundedBacklog is that limit in bytes where the stream has none: that of a stream of the default size.
	unboundedBacklog = DefaultMaxBytes / backlogPart
	// maxBacklogMessages limits the messages of a backlog. Each costs a worker a heartbeat and an acknowledgement, however
	// small it is. It is more than the uploads of 10,000 devices for an hour.
	maxBacklogMessages = 200_000
	// aloneTimes is how many times these limits a team may have while no other team has a backlog: half of the stream. An
	// installation with one team uses its stream, and another team that sends then still finds the other half. What waits
	// of other receivers counts, or the team could have half of the stream at each of them.
	aloneTimes = 8
	// recordBytes is what the stream stores for a message beside its text: subject, length, checksum and time.
	recordBytes = 100
	// backlogEvery is how often the position of the workers is read while any team has a backlog.
	backlogEvery = time.Second
	// positionFor is the time for which a position counts. Without a newer one, nothing is refused: a receiver that may
	// not read the position would refuse everything in the end.
	positionFor = 30 * time.Second
	// heldMessages is the number of unacknowledged messages up to which the delivered messages count as stored: about
	// those of a full batch. The acknowledged floor would not do, because the database may refuse a message of one team
	// for a quarter of an hour, which keeps the floor below the messages of all teams.
	heldMessages = 4096
	// maxSteps bounds the memory of a backlog.
	maxSteps = 64
)

// ErrBacklog means that too many messages of a team wait for a worker. Nothing of the call was published.
var ErrBacklog = errors.New("too many uploads of the team are not stored yet")

// amount is a number of messages and their size in the stream.
type amount struct{ bytes, messages int64 }

func (a *amount) add(b amount)      { a.bytes, a.messages = a.bytes+b.bytes, a.messages+b.messages }
func (a *amount) subtract(b amount) { a.bytes, a.messages = a.bytes-b.bytes, a.messages-b.messages }

// amountOf returns the amount of those of some messages that have a sequence, and the highest sequence. sequences may
// be nil, for all messages.
func amountOf(messages []Message, sequences []uint64) (total amount, last uint64) {
	for i := range messages {
		if sequences != nil && sequences[i] == 0 {
			continue
		}
		total.add(amount{int64(len(messages[i].Text)) + recordBytes, 1})
		if sequences != nil {
			last = max(last, sequences[i])
		}
	}
	return total, last
}

// backlogs has the messages of each team that this process published and that wait for a worker.
type backlogs struct {
	mu     sync.Mutex
	byTeam map[uuid.UUID]*backlog
	read   time.Time // when the position of the workers was last read, or nothing waited
	// waiting is how many messages of all processes waited for a worker then.
	waiting int64
}

type backlog struct {
	amount // of all steps, and of messages in flight

	steps  []step
	sealed bool                // the last step gets no more messages, unless there are too many steps
	window *semaphore.Weighted // of unconfirmed messages, see publishWindow
}

func newBacklog() *backlog { return &backlog{window: semaphore.NewWeighted(publishWindow)} }

// step is a part of a backlog, up to a sequence of the stream.
type step struct {
	amount

	last uint64
}

// admit adds messages to the backlog of a team, or returns ErrBacklog if it has reached a limit. It may thus exceed the
// limit by one call. The caller must call settle with the backlog, which stays at least until then.
func (b *backlogs) admit(team uuid.UUID, more amount, maxBytes int64) (*backlog, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	of := b.byTeam[team]
	if of == nil {
		of = newBacklog()
		b.byTeam[team] = of
	}
	maxMessages := int64(maxBacklogMessages)
	if len(b.byTeam) == 1 {
		elsewhere := max(0, b.waiting-of.messages) // Of about the same size.
		maxBytes = max(maxBytes, aloneTimes*maxBytes-elsewhere*(of.bytes/max(1, of.messages)))
		maxMessages = max(maxMessages, aloneTimes*maxMessages-elsewhere)
	}
	if (of.bytes >= maxBytes || of.messages >= maxMessages) && time.Since(b.read) < positionFor {
		return nil, ErrBacklog
	}
	of.add(more)
	return of, nil
}

// settle replaces what was admitted to a backlog by what the stream has stored, up to a sequence. If forget was called
// meanwhile, the backlog is not that of the team any more, and nothing reads it.
func (b *backlogs) settle(team uuid.UUID, of *backlog, admitted, stored amount, last uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	of.subtract(admitted)
	of.add(stored)
	switch n := len(of.steps); {
	case stored.messages == 0:
	case n == 0 || of.sealed && n < maxSteps:
		of.steps, of.sealed = append(of.steps, step{stored, last}), false
	default:
		of.steps[n-1].add(stored)
		of.steps[n-1].last = max(of.steps[n-1].last, last)
	}
	b.remove(team, of)
}

// remove forgets a team without messages. The caller holds the mutex.
func (b *backlogs) remove(team uuid.UUID, of *backlog) {
	if b.byTeam[team] == of && of.amount == (amount{}) {
		delete(b.byTeam, team)
	}
}

// free removes the messages up to a position from the backlogs. Some messages of all processes wait behind it.
func (b *backlogs) free(position uint64, waiting int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.read, b.waiting = time.Now(), waiting
	for team, of := range b.byTeam {
		of.sealed = true
		of.steps = slices.DeleteFunc(of.steps, func(s step) bool {
			if s.last > position {
				return false
			}
			of.subtract(s.amount)
			return true
		})
		b.remove(team, of)
	}
}

// forget removes all backlogs: their sequences are those of another stream.
func (b *backlogs) forget() {
	b.mu.Lock()
	defer b.mu.Unlock()
	clear(b.byTeam)
}

// largest returns the size of the largest backlog in bytes.
func (b *backlogs) largest() (bytes int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, of := range b.byTeam {
		bytes = max(bytes, of.bytes)
	}
	return bytes
}

// LargestBacklog returns the size in bytes of the largest backlog of a team in this process, and their limit.
func (q *Queue) LargestBacklog() (bytes, limit int64) { return q.backlogs.largest(), q.backlogLimit() }

func (q *Queue) backlogLimit() int64 {
	if size := q.maxBytes.Load(); size > 0 {
		return size / backlogPart
	}
	return unboundedBacklog
}

// TrackBacklogs follows the workers until ctx ends, so that the backlogs of teams shrink. A process that publishes for
// teams must run it.
func (q *Queue) TrackBacklogs(ctx context.Context, log zerolog.Logger) {
	failing := false
	retry.Every(ctx, backlogEvery, func(ctx context.Context) {
		err := q.freeBacklogs(ctx)
		if err != nil && !failing && ctx.Err() == nil {
			log.Warn().Err(err).Msg("could not read the position of the workers; teams may fill the stream")
		}
		failing = err != nil
	})
}

// freeBacklogs reads the position of the workers, if anything waits for them. Without a consumer, nothing is stored
// yet.
func (q *Queue) freeBacklogs(ctx context.Context) error {
	var position uint64
	var waiting int64
	if q.backlogs.largest() > 0 {
		ctx, cancel := context.WithTimeout(ctx, requestTimeout)
		defer cancel()
		consumer, err := q.js.Consumer(ctx, StreamName, ConsumerName)
		switch {
		case err == nil:
			position = positionOf(consumer.CachedInfo())
			waiting = int64(consumer.CachedInfo().NumPending) //nolint:gosec // It is far below the maximum.
		case !errors.Is(err, jetstream.ErrConsumerNotFound):
			return q.withCause(fmt.Errorf("reading the consumer: %w", err))
		}
	}
	q.backlogs.free(position, waiting)
	return nil
}

// positionOf returns the sequence up to which the messages of a consumer count as stored.
func positionOf(info *jetstream.ConsumerInfo) uint64 {
	if info.NumAckPending <= heldMessages {
		return info.Delivered.Stream
	}
	return info.AckFloor.Stream
}
