package worker

import "github.com/google/uuid"

// maxSuspects bounds the units, and the teams, that a worker remembers.
const maxSuspects = 1_000

// suspects has the units, sources and teams of the uploads that the database refused within the last minute. All times
// are Unix times.
type suspects struct {
	units map[string]refusals
	teams map[uuid.UUID]refusals
}

// refusals counts the refusals since a time.
type refusals struct {
	since, last int64
	count       int
}

// countRefused adds the sender of a delivery, and returns how often uploads of its unit were refused in about a minute.
// Beyond maxSuspects units it returns 1.
func (s *suspects) countRefused(d *delivery, now int64) int {
	if s.units == nil {
		s.units, s.teams = map[string]refusals{}, map[uuid.UUID]refusals{}
	}
	if d.arrival.Team != nil {
		addRefusal(s.teams, *d.arrival.Team, now)
	}
	return addRefusal(s.units, d.sender(), now)
}

func addRefusal[K comparable](senders map[K]refusals, sender K, now int64) int {
	r := senders[sender]
	if r.expired(now) && len(senders) >= maxSuspects {
		for other, of := range senders {
			if of.expired(now) {
				delete(senders, other)
			}
		}
		if len(senders) >= maxSuspects {
			return 1
		}
	}
	if now-r.since >= outcomeSeconds {
		r = refusals{since: now}
	}
	r.last, r.count = now, r.count+1
	senders[sender] = r
	return r.count
}

func (r refusals) expired(now int64) bool { return now-r.last >= outcomeSeconds }

// contains reports whether an upload of the unit, or of the team, of a delivery was refused in the last minute.
func (s *suspects) contains(d *delivery, now int64) bool {
	if of, ok := s.units[d.sender()]; ok && !of.expired(now) {
		return true
	}
	if d.arrival.Team == nil {
		return false
	}
	of, ok := s.teams[*d.arrival.Team]
	return ok && !of.expired(now)
}
