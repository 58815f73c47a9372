package export

import (
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
)

// maxPerRequester is how many exports of a key or a person run at the same time: the smallest limit that decision 32 f
// allows.
const maxPerRequester = 4

// slots limits the exports that run at the same time. A requester gets maxPerRequester. A team gets at most as many as
// remain free: 8 of 16 if it is alone, and never the last one that another team needs.
type slots struct {
	most    int // in total
	mu      sync.Mutex
	running map[*slot]bool
}

// slot is one running export.
type slot struct {
	slots     *slots
	teamID    uuid.UUID
	requester string
	began     time.Time
	sending   bool // whether the rows were counted
}

func newSlots(most int) *slots {
	return &slots{most: most, running: map[*slot]bool{}}
}

// acquire returns a slot for an export, which the caller must release. ok is false at the limit.
func (s *slots) acquire(r *Request) (acquired *slot, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ofRequester, ofTeam := 0, 0
	for other := range s.running {
		if other.teamID == r.TeamID {
			ofTeam++
		}
		if other.requester == r.Requester {
			ofRequester++
		}
	}
	if ofRequester >= maxPerRequester || ofTeam >= s.most-len(s.running) {
		return nil, false
	}
	acquired = &slot{slots: s, teamID: r.TeamID, requester: r.Requester, began: time.Now()}
	s.running[acquired] = true
	return acquired, true
}

// send marks the export as one whose rows were counted.
func (s *slot) send() {
	s.slots.mu.Lock()
	defer s.slots.mu.Unlock()
	s.sending = true
}

func (s *slot) release() {
	s.slots.mu.Lock()
	defer s.slots.mu.Unlock()
	delete(s.slots.running, s)
}

// count returns how many exports are sending, or how many are not yet.
func (s *slots) count(sending bool) (n float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for slot := range s.running {
		if slot.sending == sending {
			n++
		}
	}
	return n
}

// oldest returns the age of the oldest export in seconds, 0 if there is none.
func (s *slots) oldest() float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	var age time.Duration
	for slot := range s.running {
		age = max(age, time.Since(slot.began))
	}
	return age.Seconds()
}

// metrics returns the metrics of the running exports.
func (s *slots) metrics() []prometheus.Collector {
	running := func(state string, sending bool) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name:        "roomsensor_api_exports_running",
			Help:        "Exports that are running, by state: counting rows, or sending them.",
			ConstLabels: prometheus.Labels{"state": state},
		}, func() float64 { return s.count(sending) })
	}
	return []prometheus.Collector{
		running("counting", false), running("sending", true),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "roomsensor_api_exports_oldest_seconds",
			Help: "Age of the oldest running export in seconds; 0 if none runs.",
		}, s.oldest),
	}
}
