package queue

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go/jetstream"

	"roomsensor/internal/roomsensor"
)

// Because a full stream refuses uploads, Purge deletes stored uploads before their age when the stream is nearly full:
// the oldest ones of the team that has the most, so that no team takes the uploads of others from a replay.
const (
	purgeAbove   = 0.9 // of MaxBytes
	purgeDownTo  = 0.8 // of MaxBytes, which leaves space for a while
	purgeTimeout = time.Minute
	// purgeRounds bounds the rounds of one call, each of which reads the size of the stream again, because shares are
	// estimates. Without shares, it takes some 50 rounds until 400 large messages behind 200,000 small ones are reached.
	purgeRounds = 100
)

// Purged is what Purge deleted.
type Purged struct {
	Messages uint64               // because of their age
	Early    uint64               // because the stream was nearly full
	First    uint64               // first sequence that the stream keeps
	Before   map[uuid.UUID]uint64 // by team: the sequence below which its uploads were deleted early; uuid.Nil: no team
}

// Purge deletes messages from the stream that all workers have settled and that are older than keep, and more of the
// settled ones when the stream is nearly full. It never deletes a message that is not settled. shares returns what the
// teams have in the stream; Purge calls it only when that is nearly full. Without shares, the oldest messages of all
// teams are deleted.
func (q *Queue) Purge(
	ctx context.Context, keep time.Duration, shares func(context.Context) []roomsensor.StreamShare,
) (Purged, error) {
	ctx, cancel := context.WithTimeout(ctx, purgeTimeout)
	defer cancel()
	p := purge{queue: q, Purged: Purged{Before: map[uuid.UUID]uint64{}}}
	if err := p.read(ctx); err != nil {
		return p.Purged, err
	}
	upTo, err := p.byAge(ctx, keep)
	if err == nil && upTo > p.state.FirstSeq {
		p.Messages, err = p.delete(ctx, subjects, upTo)
		if err == nil {
			err = p.read(ctx)
		}
	}
	if err == nil && p.maxBytes > 0 && float64(p.state.Bytes) >= purgeAbove*float64(p.maxBytes) {
		err = p.bySize(ctx, shares(ctx))
	}
	p.First = p.state.FirstSeq
	return p.Purged, err
}

// purge is one call of Purge.
type purge struct {
	Purged

	queue    *Queue
	stream   jetstream.Stream
	state    jetstream.StreamState
	maxBytes int64
	floor    uint64    // everything up to this sequence is settled
	consumer time.Time // when the consumer with this floor was created
}

// read reads the state of the stream, after the floor.
func (p *purge) read(ctx context.Context) error {
	stream, consumer, err := p.queue.inspect(ctx)
	if err != nil {
		return err
	}
	info := stream.CachedInfo()
	p.stream, p.state, p.maxBytes = stream, info.State, info.Config.MaxBytes
	p.floor, p.consumer = consumer.CachedInfo().AckFloor.Stream, consumer.CachedInfo().Created
	return nil
}

// byAge finds the first message that is not older than keep, once there is one that is a thousandth older: every call
// would find some otherwise. It bisects, because messages are in the order of their time.
func (p *purge) byAge(ctx context.Context, keep time.Duration) (uint64, error) {
	oldest := time.Now().Add(-keep)
	if p.state.Msgs == 0 || !p.state.FirstTime.Before(oldest.Add(-keep/1000)) {
		return 0, nil
	}
	from, to := p.state.FirstSeq, p.end()
	for from < to {
		middle := from + (to-from)/2
		msg, err := messageFrom(ctx, p.stream, middle)
		if err != nil {
			return 0, err
		}
		if msg != nil && msg.Time.Before(oldest) {
			from = middle + 1
		} else {
			to = middle
		}
	}
	return from, nil
}

// end returns one above the last settled sequence.
func (p *purge) end() uint64 { return max(p.state.FirstSeq, min(p.floor, p.state.LastSeq)+1) }

// bySize deletes settled messages until the stream has no more than purgeDownTo, or nothing more can be deleted.
func (p *purge) bySize(ctx context.Context, shares []roomsensor.StreamShare) error {
	shares = slices.Clone(shares)
	for range purgeRounds {
		excess := float64(p.state.Bytes) - purgeDownTo*float64(p.maxBytes)
		if excess <= 0 {
			return nil
		}
		shares = slices.DeleteFunc(shares, func(s roomsensor.StreamShare) bool { return s.Sequence >= p.end() })
		before := p.Early
		cuts, rest := cut(shares, excess/float64(p.state.Bytes))
		for _, team := range slices.SortedFunc(maps.Keys(cuts), roomsensor.CompareIDs) {
			end := cuts[team]
			n, err := p.delete(ctx, subjectsOf(team), end)
			if err != nil {
				return err
			}
			p.Early += n
			p.Before[team] = end
		}
		shares = rest
		if len(cuts) == 0 {
			n, err := p.delete(ctx, subjects, p.oldest(excess))
			if err != nil {
				return err
			}
			p.Early += n
		}
		if err := p.read(ctx); err != nil {
			return err
		}
		if p.Early == before && len(cuts) == 0 {
			return nil
		}
	}
	return nil
}

// oldest returns the end of the oldest settled messages with some bytes in excess, if all messages have the same size.
// Where they are smaller, the next round deletes more.
func (p *purge) oldest(excess float64) uint64 {
	count := excess / float64(p.state.Bytes) * float64(p.state.LastSeq-p.state.FirstSeq+1)
	return min(p.state.FirstSeq+uint64(count)+1, p.end())
}

// cut returns the sequences below which the messages of some teams must be deleted to delete a part of all messages in
// bytes, and the shares that remain. It takes the oldest share of the team that has the most, again and again.
func cut(shares []roomsensor.StreamShare, part float64) (ends map[uuid.UUID]uint64, rest []roomsensor.StreamShare) {
	byTeam, sizes, total := map[uuid.UUID][]roomsensor.StreamShare{}, map[uuid.UUID]int64{}, int64(0)
	slices.SortFunc(shares, func(a, b roomsensor.StreamShare) int { return cmp.Compare(a.Sequence, b.Sequence) })
	for _, s := range shares {
		byTeam[s.Team] = append(byTeam[s.Team], s)
		sizes[s.Team] += s.Bytes
		total += s.Bytes
	}
	ends = map[uuid.UUID]uint64{}
	for deleted := int64(0); float64(deleted) < part*float64(total); {
		team := largest(sizes)
		oldest := byTeam[team][0]
		byTeam[team] = byTeam[team][1:]
		sizes[team] -= oldest.Bytes
		deleted += oldest.Bytes
		ends[team] = oldest.Sequence + 1
	}
	for _, left := range byTeam {
		rest = append(rest, left...)
	}
	return ends, rest
}

// largest returns the team with the most bytes; of several, the one with the least id.
func largest(sizes map[uuid.UUID]int64) (team uuid.UUID) {
	most := int64(-1)
	for of, size := range sizes {
		if size > most || (size == most && roomsensor.CompareIDs(of, team) < 0) {
			team, most = of, size
		}
	}
	return team
}

// delete deletes the settled messages of some subjects below a sequence, and returns their number. It deletes nothing
// if a replay created the consumer again: that needs what it starts with, which may be settled no more.
func (p *purge) delete(ctx context.Context, filter string, end uint64) (uint64, error) {
	if end <= p.state.FirstSeq || end > p.end() { // Sequence 0 would delete everything.
		return 0, nil
	}
	now, err := p.queue.js.Consumer(ctx, StreamName, ConsumerName)
	if err != nil {
		return 0, fmt.Errorf("reading the consumer again: %w", err)
	}
	if !now.CachedInfo().Created.Equal(p.consumer) {
		return 0, nil
	}
	request, err := json.Marshal(jetstream.StreamPurgeRequest{Sequence: end, Subject: filter})
	if err != nil {
		return 0, fmt.Errorf("purging the stream: %w", err)
	}
	reply, err := p.queue.nc.RequestWithContext(ctx, jetstream.DefaultAPIPrefix+"STREAM.PURGE."+StreamName, request)
	if err != nil {
		return 0, fmt.Errorf("purging the stream: %w", err)
	}
	var answer struct {
		Error  *jetstream.APIError `json:"error"`
		Purged uint64              `json:"purged"`
	}
	if err := json.Unmarshal(reply.Data, &answer); err != nil {
		return 0, fmt.Errorf("purging the stream: %w", err)
	}
	if answer.Error != nil {
		return 0, fmt.Errorf("purging the stream: %w", answer.Error)
	}
	return answer.Purged, nil
}

// subjectsOf returns the subjects of a team; uuid.Nil stands for uploads without a team.
func subjectsOf(team uuid.UUID) string {
	name := NoTeam
	if team != uuid.Nil {
		name = team.String()
	}
	return subjectPrefix + name + ".*"
}
