package worker

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"roomsensor/internal/retry"
	"roomsensor/internal/roomsensor"
)

// The database may refuse an upload for a cause that does not pass: a trigger, a damaged chunk, a bug. Such an upload
// becomes a reject, but only while the database stores other uploads. If it refuses most of them, the cause is in the
// database and not in the uploads, so the worker holds them: they stay in the queue.
const (
	// DefaultParkAfter is the number of deliveries after which an upload that the database refuses becomes a reject.
	// With the delays of refusedBackoff that takes a quarter of an hour.
	DefaultParkAfter = 50
	// aloneAfter is the number of deliveries after which an upload does not share a transaction with newer ones, and is
	// written individually if another upload like it, or a lock, stops their transaction.
	aloneAfter = 5
	// maxRefusals bounds the refusals in one batch, or in one upload, after which the rest is not split further in this
	// delivery: the refusals of one device must not keep a writer busy. Each one may take as long as a timeout. It also
	// bounds the refusals of one unit that count per minute, so that one device cannot make the worker hold a fleet.
	maxRefusals = 20
	// splitTime is the time per minute for splitting the uploads that are parked. Within it there is no limit of refusals,
	// because it is their last delivery. The reject of a parked upload has all readings that were not split.
	splitTime = 10 * time.Second
	// outcomeSeconds is the time over which outcomes count.
	outcomeSeconds = 60
	// storesWithin is the number of seconds in which a database that still stores uploads has stored one.
	storesWithin = 10
	// A worker holds uploads above both of these: holdPercent is more than a single team should send, and holdMinimum
	// keeps a quiet fleet with one bad device from being held.
	holdMinimum = 20
	holdPercent = 50
)

// refusedBackoff is the delay until a refused upload is delivered again, by the number of its deliveries.
var refusedBackoff = retry.Backoff{First: time.Second, Max: 30 * time.Second}

// outcomes counts what became of the uploads of the last minute in this worker.
type outcomes struct {
	parkAfter int

	mu       sync.Mutex
	seconds  [outcomeSeconds]outcome
	lost     time.Time // last failure of the whole database
	suspects suspects
}

// outcome is what became of the uploads of one second.
type outcome struct {
	at         int64 // Unix time
	stored     int   // uploads with readings
	refused    int   // by the database, also if they became rejects
	deliveries int   // the highest number of deliveries of an upload that was returned to the queue
	splitting  time.Duration
}

// update changes the outcome of the current second.
func (o *outcomes) update(change func(*outcome)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now().Unix()
	current := &o.seconds[now%outcomeSeconds]
	if current.at != now {
		*current = outcome{at: now}
	}
	change(current)
}

// sum returns the outcome of the last minute.
func (o *outcomes) sum() outcome { return o.sumOf(outcomeSeconds) }

// sumOf returns the outcome of some seconds, at most a minute.
func (o *outcomes) sumOf(seconds int64) (total outcome) {
	o.mu.Lock()
	defer o.mu.Unlock()
	oldest := time.Now().Unix() - seconds
	for i := range o.seconds {
		if s := &o.seconds[i]; s.at > oldest {
			total.stored += s.stored
			total.refused += s.refused
			total.deliveries = max(total.deliveries, s.deliveries)
			total.splitting += s.splitting
		}
	}
	return total
}

// countStored counts the stored uploads that have readings; the others do not show that the database stores readings.
func (o *outcomes) countStored(results []result) {
	o.update(func(s *outcome) {
		for i := range results {
			if results[i].resolved() > 0 {
				s.stored++
			}
		}
	})
}

// countRefused counts a refused upload, at most maxRefusals per unit and minute, and makes its sender a suspect for a
// minute.
func (o *outcomes) countRefused(d *delivery) {
	o.update(func(s *outcome) {
		if o.suspects.countRefused(d, s.at) <= maxRefusals {
			s.refused++
		}
	})
}

// suspect reports whether an upload of the sender of a delivery was refused in the last minute. A nil receiver has no
// suspects.
func (o *outcomes) suspect(d *delivery) bool {
	if o == nil {
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.suspects.contains(d, time.Now().Unix())
}

func (o *outcomes) countReturned(deliveries int) {
	o.update(func(s *outcome) { s.deliveries = max(s.deliveries, deliveries) })
}

// splittable returns the time left for splitting an upload that is about to be parked.
func (o *outcomes) splittable() time.Duration { return max(0, splitTime-o.sum().splitting) }

func (o *outcomes) countSplitting(took time.Duration) {
	o.update(func(s *outcome) { s.splitting += took })
}

// countFailure notes that a batch failed. A failure of a part of the batch does not count as an outage.
func (o *outcomes) countFailure(err error) {
	if isRefused(err) || errors.Is(err, roomsensor.ErrBlocked) {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lost = time.Now()
}

// countBatch notes that all of a batch was stored. If the worker held uploads, the database accepts them again, so the
// refusals before no longer count.
func (o *outcomes) countBatch(results []result) {
	if !o.holds() || !slices.ContainsFunc(results, func(r result) bool { return r.resolved() > 0 }) {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range o.seconds {
		o.seconds[i].refused = 0
	}
	o.suspects = suspects{}
}

// holds reports whether the database refuses most uploads.
func (o *outcomes) holds() bool {
	total := o.sum()
	return total.refused >= holdMinimum && total.refused*100 > holdPercent*(total.refused+total.stored)
}

// stores reports whether the database stores uploads, even if it refuses most of them.
func (o *outcomes) stores() bool { return o.sumOf(storesWithin).stored > 0 }

// parks reports whether an upload with this many deliveries becomes a reject if the database refuses it again. It needs
// a database that stored other uploads within the last minute and that was available all the time.
func (o *outcomes) parks(deliveries int) bool {
	o.mu.Lock()
	available := time.Since(o.lost) >= outcomeSeconds*time.Second
	o.mu.Unlock()
	return deliveries > o.parkAfter && available && o.sum().stored > 0 && !o.holds()
}

// finality is which refusals of an upload become rejects; after any other one it stays in the queue.
type finality int

const (
	retryAll finality = iota
	rejectPermanent
	rejectAll
)

// finality returns the finality of a delivery. In a replay of a reject, all refusals are final.
func (w *writer) finality(d *delivery) finality {
	switch {
	case w.outcomes == nil:
		return rejectAll
	case w.outcomes.holds():
		return retryAll
	case w.outcomes.parks(d.deliveries):
		return rejectAll
	}
	return rejectPermanent
}

// rejects reports whether a refusal becomes a reject.
func (f finality) rejects(err error) bool {
	return (f == rejectAll && isRefused(err)) || (f == rejectPermanent && errors.Is(err, roomsensor.ErrNotStorable))
}

// maxConstraint bounds the name of a constraint in a reject, in bytes, as PostgreSQL does for identifiers. A trigger
// may give a longer one.
const maxConstraint = 63

// sqlState returns the SQLSTATE of an error, and the constraint that refused the row, in parentheses, for an operator.
// It returns nothing for an error without them, such as a timeout.
func sqlState(err error) string {
	state, ok := errors.AsType[interface {
		error
		SQLState() string
	}](err)
	if !ok {
		return ""
	}
	refused, ok := errors.AsType[interface {
		error
		Constraint() string
	}](err)
	if !ok {
		return fmt.Sprintf(" (SQLSTATE %s)", state.SQLState())
	}
	name := refused.Constraint()
	return fmt.Sprintf(" (SQLSTATE %s, constraint %q)", state.SQLState(), name[:min(len(name), maxConstraint)])
}
