package feed_test

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/test/conformance"
)

// TestFeedModelDeletions runs the model of the change feed with an operator who deletes ranges of readings. In every run,
// the copy of each follower must equal the table at the end. If a deletion does not wait for the transactions with an
// earlier time in the feed, copies must lack readings, or the test would prove nothing.
func TestFeedModelDeletions(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "A5.12")
	wrong := map[bool]int{}
	for _, waits := range []bool{true, false} {
		for seed := range uint64(modelRuns) {
			m := newFeedModel(seed)
			m.deleter = &modelDeleter{waits: waits}
			for range modelSteps {
				m.step()
			}
			m.finish()
			for _, f := range m.followers {
				if !maps.Equal(m.table, f.copy) {
					wrong[waits]++
				}
			}
		}
	}
	t.Logf("copies that differ from the table, by waiting: %v", wrong)
	require.Zero(t, wrong[true])
	require.NotZero(t, wrong[false])
}

// modelDeletion is a row of reading_deletions: a range of keys, and its time in the feed.
type modelDeletion struct {
	at       int64
	from, to int
}

// modelDeleter is a connection that deletes ranges of readings.
type modelDeleter struct {
	modelDeletion

	waits   bool         // for the transactions with an earlier time
	state   int          // the next step; 0: no transaction
	lock    int64        // 0: none
	deleted map[int]bool // the rows that it locks
}

// locks reports whether a writer of a key must wait. There may be no deleter.
func (d *modelDeleter) locks(key int) bool { return d != nil && d.deleted[key] }

// abort rolls the transaction back. One that is visible is committed.
func (d *modelDeleter) abort() { d.state, d.lock, d.deleted = 0, 0, nil }

// delete takes the next step of a deletion. The statements of feed_begin_deletion are steps of their own.
func (m *feedModel) delete(d *modelDeleter) {
	const begun, locked, waiting, deleted, visible = 1, 2, 3, 4, 5
	switch d.state {
	case 0:
		d.from = m.random.IntN(10 * modelWriters)
		d.to, d.state = d.from+1+m.random.IntN(20), begun
		d.at = floor(max(m.clock, m.reserved)) + 10*millisecond
	case begun:
		d.lock, d.state = d.at, locked
	case locked:
		if d.state = waiting; m.reserved >= d.at {
			d.abort()
		}
	case waiting:
		if d.waits && !m.passed(d) {
			return
		}
		if m.writes(d) {
			return // It waits for the row.
		}
		d.deleted, d.state = map[int]bool{}, deleted
		for key := range m.table {
			if key >= d.from && key < d.to {
				d.deleted[key] = true
			}
		}
	case deleted:
		maps.DeleteFunc(m.table, func(key int, _ modelRow) bool { return d.deleted[key] })
		m.deletions = append(m.deletions, d.modelDeletion)
		d.state = visible
	case visible:
		d.abort()
	}
}

// passed moves feed_reserved, and reports whether the watermark is the time of a deletion: no earlier one is locked.
func (m *feedModel) passed(d *modelDeleter) bool {
	if m.reserving != nil {
		return false // feed_reserve has one caller at a time.
	}
	m.reserved = max(m.clock-100_000, m.reserved+10_000)
	m.durable = m.reserved
	watermark := min(m.reserved, d.lock)
	for _, w := range m.writers {
		if w.lock != 0 {
			watermark = min(watermark, w.lock)
		}
	}
	return watermark == d.at
}

// writes reports whether a transaction has changed a row that a deletion finds.
func (m *feedModel) writes(d *modelDeleter) bool {
	for _, w := range m.writers {
		for key := range w.rows {
			_, exists := m.table[key]
			if w.state != 0 && exists && key >= d.from && key < d.to {
				return true
			}
		}
	}
	return false
}
