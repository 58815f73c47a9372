package feed_test

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/test/conformance"
)

const (
	modelRuns    = 1000
	modelSteps   = 400
	modelWriters = 8
)

// TestFeedModel runs a model of the change feed: writers, readers of watermarks and followers take single steps in a
// random order, transactions fail, and the database fails over to a machine with another clock. In every run, the copy
// of each follower must equal the table at the end, and no reading may be repeated unless it changed. Two followers that
// do without a watermark must miss readings in the same runs, or the test would prove nothing.
func TestFeedModel(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "A5.3")
	missed := map[string]int{}
	for seed := range uint64(modelRuns) {
		m := newFeedModel(seed)
		for range modelSteps {
			m.step()
		}
		m.finish()
		for i, f := range m.followers {
			require.Equal(t, m.table, f.copy, "seed %d, follower %d", seed, i)
			require.Empty(t, f.repeated, "seed %d, follower %d", seed, i)
		}
		for name, naive := range m.naive {
			if !maps.Equal(m.table, naive.copy) {
				missed[name]++
			}
		}
	}
	t.Logf("runs in which naive followers missed readings: %v", missed)
	require.NotZero(t, missed["highest ingested_at"])
	require.NotZero(t, missed["number taken at insert"])
}

// modelRow is a row of readings. Its number is taken when the row is written, like one of a sequence.
type modelRow struct {
	value      int
	ingestedAt int64
	number     int
}

type feedModel struct {
	random    *rand.Rand
	clock     int64 // of the database
	reserved  int64 // feed_reserved as every transaction reads it
	durable   int64 // feed_reserved as it is after a crash
	reserving *modelFollower
	table     map[int]modelRow
	late      map[int64]int64 // times in the feed by ingested_at
	number    int
	writers   []*modelWriter
	followers []*modelFollower
	naive     map[string]*naiveFollower
	deleter   *modelDeleter // nil: none
	deletions []modelDeletion
}

// modelWriter is a connection that writes: a worker, or another program.
type modelWriter struct {
	worker bool
	keys   int // that only this writer writes, from here on
	state  int // the next step; 0: no transaction
	now    int64
	lock   int64 // 0: none
	stamp  int64
	rows   map[int]modelRow
	effect int64 // the time in the feed of a late transaction of another program
}

// modelFollower is a client whose pages have two readings.
type modelFollower struct {
	state     int // of the read of a watermark
	value     int64
	watermark int64
	from, to  int64
	after     int
	copy      map[int]modelRow
	repeated  []string
}

type naiveFollower struct {
	last int64
	copy map[int]modelRow
}

func newFeedModel(seed uint64) *feedModel {
	m := &feedModel{
		random: rand.New(rand.NewPCG(seed, 0)),
		clock:  1_000_000_000, table: map[int]modelRow{}, late: map[int64]int64{},
		naive: map[string]*naiveFollower{
			"highest ingested_at": {copy: map[int]modelRow{}}, "number taken at insert": {copy: map[int]modelRow{}},
		},
	}
	for i := range modelWriters {
		m.writers = append(m.writers, &modelWriter{worker: i%4 != 0, keys: 10 * i})
	}
	for range 2 {
		m.followers = append(m.followers, &modelFollower{copy: map[int]modelRow{}, after: -1})
	}
	return m
}

func (m *feedModel) step() {
	m.clock += 1 + m.random.Int64N(40_000)
	switch n := m.random.IntN(100); {
	case n < 60:
		m.write(m.writers[m.random.IntN(len(m.writers))])
	case n < 62:
		m.writers[m.random.IntN(len(m.writers))].abort()
	case n < 70 && m.deleter != nil:
		m.delete(m.deleter)
	case n < 90:
		m.follow(m.followers[m.random.IntN(len(m.followers))])
	case n < 99:
		m.followNaively()
	default:
		m.failOver()
	}
}

// millisecond is the precision of a lock, in units of the clock. The units are so small that no two transactions begin at
// the same time.
const millisecond = 16_000

func floor(at int64) int64 { return at / millisecond * millisecond }

// write takes the next step of a transaction. The statements of feed_begin and feed_finish are steps of their own.
func (m *feedModel) write(w *modelWriter) {
	const begun, locked, writing, written, visible = 1, 2, 3, 4, 5
	switch w.state {
	case 0:
		w.now, w.stamp, w.effect, w.rows, w.state = m.clock, m.clock, 0, map[int]modelRow{}, begun
		if !w.worker {
			w.state = writing
		}
	case begun:
		w.lock, w.state = floor(max(w.now, m.reserved+1)), locked
	case locked:
		w.stamp, w.state = max(w.now, m.reserved+1), writing
	case writing:
		m.writeRow(w)
		if m.random.IntN(3) == 0 {
			w.state = written
		}
	case written:
		if !w.worker && w.lock == 0 {
			w.lock = floor(w.now)
			if m.reserved >= w.now {
				w.lock = floor(max(m.clock, m.reserved+1))
			}
			return
		}
		if !w.worker && w.effect == 0 {
			w.effect = w.now
			if m.reserved >= w.now {
				w.effect = max(m.clock, m.reserved+1, w.lock)
			}
			return
		}
		maps.Copy(m.table, w.rows)
		if w.effect > w.now {
			m.late[w.now] = w.effect
		}
		w.state = visible
	case visible:
		w.state, w.lock = 0, 0
	}
}

// writeRow writes a row, unless it must wait for the end of a deletion.
func (m *feedModel) writeRow(w *modelWriter) {
	m.number++
	if key := w.keys + m.random.IntN(5); !m.deleter.locks(key) {
		w.rows[key] = modelRow{m.number, w.stamp, m.number}
	}
}

// abort rolls a transaction back. One that is visible is committed.
func (w *modelWriter) abort() { w.state, w.lock = 0, 0 }

// follow takes the next step of a follower: two steps for a watermark, and one per page.
func (m *feedModel) follow(f *modelFollower) {
	switch {
	case f.state == 0 && f.from == f.to && m.reserving == nil:
		m.reserved = max(m.clock-100_000, m.reserved+10_000)
		f.value, f.state, m.reserving = m.reserved, 1, f
	case f.state == 1: // It commits.
		m.durable, m.reserving, f.state = f.value, nil, 2
	case f.state == 2:
		f.watermark, f.state = f.value, 0
		for _, w := range m.writers {
			if w.lock != 0 {
				f.watermark = min(f.watermark, w.lock)
			}
		}
		if m.deleter != nil && m.deleter.lock != 0 {
			f.watermark = min(f.watermark, m.deleter.lock)
		}
		f.to = max(f.from, f.watermark)
	case f.from < f.to:
		m.page(f)
	}
}

// page reads two readings of a round. A page at the start of it applies the deletions of the round before that.
func (m *feedModel) page(f *modelFollower) {
	for _, d := range m.deletions {
		if f.after == -1 && d.at >= f.from && d.at < f.to {
			maps.DeleteFunc(f.copy, func(key int, _ modelRow) bool { return key >= d.from && key < d.to })
		}
	}
	for _, key := range slices.Sorted(maps.Keys(m.table)) {
		row := m.table[key]
		at := cmp.Or(m.late[row.ingestedAt], row.ingestedAt)
		if key <= f.after || at < f.from || at >= f.to {
			continue
		}
		if before, ok := f.copy[key]; ok && before == row {
			f.repeated = append(f.repeated, fmt.Sprint(key, row))
		}
		f.copy[key], f.after = row, key
		if m.random.IntN(2) == 0 {
			return
		}
	}
	f.from, f.after = f.to, -1
}

func (m *feedModel) followNaively() {
	for name, f := range m.naive {
		last := f.last
		for key, row := range m.table {
			at := row.ingestedAt
			if name == "number taken at insert" {
				at = int64(row.number)
			}
			if at > f.last {
				f.copy[key], last = row, max(last, at)
			}
		}
		f.last = last
	}
}

// failOver ends all transactions. The value of feed_reserved may be lost unless it was committed, and the clock of the
// new primary may be behind.
func (m *feedModel) failOver() {
	for _, w := range m.writers {
		w.abort()
	}
	if m.deleter != nil {
		m.deleter.abort()
	}
	if m.reserving != nil {
		m.reserving.state, m.reserving = 0, nil
		if m.random.IntN(2) == 0 {
			m.reserved = m.durable
		}
		m.durable = m.reserved
	}
	for _, f := range m.followers {
		f.state = 0
	}
	m.clock += m.random.Int64N(2_000_000) - 1_500_000
}

// finish ends all transactions, and lets all followers catch up.
func (m *feedModel) finish() {
	if m.deleter != nil {
		m.deleter.abort()
	}
	for _, w := range m.writers {
		for w.state != 0 {
			m.write(w)
		}
	}
	for range 500 {
		for _, f := range m.followers {
			m.follow(f)
		}
	}
	m.followNaively()
}
