package worker

import (
	"slices"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"roomsensor/internal/queue"
)

// laneUpload returns an upload of a team, or of a trusted publisher for 0, that takes a size in a batch.
func laneUpload(team byte, sequence, size int) *queue.Delivery {
	d := &queue.Delivery{Text: make([]byte, size-laneUploadBytes)}
	d.Arrival.Sequence = uint64(sequence)
	if team != 0 {
		d.Arrival.Team = &uuid.UUID{team}
	}
	return d
}

// inLane lists the uploads of a batch by team.
func inLane(b *laneBatch) map[byte][]uint64 {
	list := map[byte][]uint64{}
	for _, d := range b.deliveries() {
		var team byte
		if d.Arrival.Team != nil {
			team = d.Arrival.Team[0]
		}
		list[team] = append(list[team], d.Arrival.Sequence)
	}
	return list
}

func TestLaneBatch(t *testing.T) {
	t.Parallel()
	const size = 200
	b := newLaneBatch(10 * size)
	require.True(t, b.empty())
	for n := range 100 { // A team that is alone may have everything.
		b.add(laneUpload(1, n, size))
	}
	require.Equal(t, map[byte][]uint64{1: {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}}, inLane(b))
	for n := range 3 { // Others get their share, at the cost of the newest uploads of the first team.
		b.add(laneUpload(2, n, size))
		b.add(laneUpload(0, n, size))
		b.add(laneUpload(1, 100+n, size))
	}
	require.Equal(t, map[byte][]uint64{0: {0, 1, 2}, 1: {0, 1, 2, 3}, 2: {0, 1, 2}}, inLane(b))
	b.add(laneUpload(2, 3, size)) // A third of ten uploads is less than four.
	require.Len(t, inLane(b)[2], 3)
	b.add(laneUpload(3, 0, 2*size))
	require.Equal(t, []uint64{0}, inLane(b)[3])
	require.LessOrEqual(t, b.bytes, b.limit)
}

// A batch has the first uploads of each team, all of them if the team stays below the equal share, and never more than
// its limit. A team above its share has about as much as it.
func TestLaneBatchShares(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		const limit, largest = 20_000, laneUploadBytes + 1000
		b := newLaneBatch(limit)
		sent, order := map[byte]int{}, map[byte][]uint64{}
		for n := range rapid.IntRange(1, 300).Draw(rt, "uploads") {
			d := laneUpload(rapid.SampledFrom([]byte{1, 1, 1, 1, 2, 2, 3, 4}).Draw(rt, "team"), n,
				rapid.IntRange(laneUploadBytes, largest).Draw(rt, "size"))
			sent[d.Arrival.Team[0]] += laneSize(d)
			order[d.Arrival.Team[0]] = append(order[d.Arrival.Team[0]], d.Arrival.Sequence)
			b.add(d)
			require.LessOrEqual(rt, b.bytes, limit)
		}
		got, bytes := inLane(b), 0
		for team, all := range order {
			own := b.teams[uuid.UUID{team}].bytes
			bytes += own
			require.True(rt, slices.IsSorted(got[team]))
			if sent[team] <= limit/len(order) {
				require.Equal(rt, all, got[team])
			} else {
				require.GreaterOrEqual(rt, own, limit/len(order)-largest)
			}
		}
		require.Equal(rt, b.bytes, bytes)
	})
}
