package ledger

import "time"

// book gives every bucket of a unit once: the newest ones for what it sends all the time, old ones for what it sends
// after weeks offline. Both go back in time.
type book struct{ recent, leastRecent, old, leastOld time.Time }

const (
	bucket = 5 * time.Minute
	day    = 24 * time.Hour
	// OldAge is how old the bursts of units that were offline are at least.
	OldAge = 50 * day
	// Oldest is the age that no reading exceeds, so that one export of the API can show them all.
	Oldest = 88 * day
)

func newBook(u *Unit, now time.Time) *book {
	b := &book{
		recent: now.Truncate(bucket), leastRecent: now.Add(-OldAge),
		old: now.Add(-OldAge).Truncate(bucket), leastOld: now.Add(-Oldest),
	}
	if !u.To.IsZero() {
		b.recent = u.To.Truncate(bucket)
	}
	if !u.From.IsZero() {
		b.leastRecent, b.old = u.From, time.Time{} // It did not sit there when it was old.
	}
	return b
}

func (b *book) take(n int, old bool) []time.Time {
	from := &b.recent
	if old && !b.old.IsZero() {
		from = &b.old
	}
	buckets := make([]time.Time, n)
	for i := range buckets {
		*from = from.Add(-bucket)
		buckets[i] = *from
	}
	return buckets
}

// overrun reports whether the unit gave more buckets than it has.
func (b *book) overrun() bool {
	return b.recent.Before(b.leastRecent) || !b.old.IsZero() && b.old.Before(b.leastOld)
}
