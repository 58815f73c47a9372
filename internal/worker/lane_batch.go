package worker

import (
	"maps"
	"slices"

	"github.com/google/uuid"

	"roomsensor/internal/queue"
	"roomsensor/internal/roomsensor"
)

const (
	// defaultLaneBytes is the size of a batch of the priority lane: some 2,000 readings, as in a batch of the backlog, so
	// that the next batch does not wait long for it.
	defaultLaneBytes = 256 << 10
	// laneUploadBytes is what an upload counts in a batch beside its text, because its heartbeat costs about as much as a
	// reading.
	laneUploadBytes = 128
)

// laneBatch holds the uploads of the next transaction of the priority lane. It never makes the lane wait: if not all
// uploads fit, each team has about the same share in bytes, and the other uploads are left to their turn in the
// backlog. The time that an upload of one team waits thus depends on the number of teams, not on what the others send.
// Uploads of trusted publishers count as those of one team, uuid.Nil.
type laneBatch struct {
	limit int // of bytes
	bytes int
	teams map[uuid.UUID]*laneShare
}

// laneShare is the part of a team in a batch.
type laneShare struct {
	deliveries []*queue.Delivery
	bytes      int
}

func newLaneBatch(limit int) *laneBatch {
	return &laneBatch{limit: limit, teams: map[uuid.UUID]*laneShare{}}
}

// add adds an upload, unless its team would have more than its share of a full batch. Otherwise it replaces the last
// uploads of the team that has the most.
func (b *laneBatch) add(d *queue.Delivery) {
	var team uuid.UUID
	if d.Arrival.Team != nil {
		team = *d.Arrival.Team
	}
	own := b.teams[team]
	if own == nil {
		own = &laneShare{}
		b.teams[team] = own
	}
	size := laneSize(d)
	for b.bytes+size > b.limit {
		if own.bytes+size > b.limit/len(b.teams) {
			return
		}
		b.removeLast(b.largest())
	}
	own.deliveries = append(own.deliveries, d)
	own.bytes += size
	b.bytes += size
}

func laneSize(d *queue.Delivery) int { return len(d.Text) + laneUploadBytes }

func (b *laneBatch) largest() (largest *laneShare) {
	for _, share := range b.teams {
		if largest == nil || share.bytes > largest.bytes {
			largest = share
		}
	}
	return largest
}

func (b *laneBatch) removeLast(from *laneShare) {
	last := len(from.deliveries) - 1
	size := laneSize(from.deliveries[last])
	from.deliveries[last] = nil
	from.deliveries = from.deliveries[:last]
	from.bytes -= size
	b.bytes -= size
}

// deliveries lists the uploads by team, those of each team in their order.
func (b *laneBatch) deliveries() (list []*queue.Delivery) {
	for _, team := range slices.SortedFunc(maps.Keys(b.teams), roomsensor.CompareIDs) {
		list = append(list, b.teams[team].deliveries...)
	}
	return list
}

func (b *laneBatch) empty() bool { return b.bytes == 0 }

// large reports whether half of the limit is used. The rest is for uploads that arrive before a writer is free.
func (b *laneBatch) large() bool { return 2*b.bytes >= b.limit }

// full returns false: a batch that accepted no uploads would make the lane wait.
func (b *laneBatch) full() bool { return false }

// extend does nothing, because the priority lane acknowledges nothing.
func (b *laneBatch) extend() {}
