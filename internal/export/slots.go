package export

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"roomsensor/internal/fairshare"
)

// maxPerRequester is how many exports of a key or a person run at the same time: the smallest limit that decision 32 f
// allows.
const maxPerRequester = 4

// slots limits the exports that run at the same time, and knows what they do.
type slots struct {
	limiter *fairshare.Limiter
	mu      sync.Mutex
	running map[*slot]bool
}

// slot is one running export.
type slot struct {
	*fairshare.Held

	slots   *slots
	began   time.Time
	sending bool // whether the rows were counted
}

func newSlots(most int) *slots {
	return &slots{running: map[*slot]bool{}, limiter: fairshare.New(fairshare.Config{
		Name: "exports", Key: fairshare.Limit{Most: maxPerRequester}, Team: fairshare.Limit{Most: fairshare.Remaining},
		Total: fairshare.Limit{
			Most: most, RetryAfter: retryAfter,
			Message: "Too many exports run at the same time. Try again after the seconds in Retry-After.",
		},
	})}
}

// acquire returns a slot for an export, which the caller must release. Its error is overloaded at a limit.
func (s *slots) acquire(r *Request) (*slot, error) {
	held, err := s.limiter.Try(fairshare.Owner{Team: r.TeamID, Key: r.Requester}, 1)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	acquired := &slot{Held: held, slots: s, began: time.Now()}
	s.running[acquired] = true
	return acquired, nil
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
	s.Release()
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
