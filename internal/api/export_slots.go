package api

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"roomsensor/internal/roomsensor"
)

const (
	// maxExports is how many exports run at the same time. Each takes a connection of store.API while it reads, and up
	// to 17 MB of memory, one of aggregates 20 MB, until its client has received all rows: at most 320 MB of the 512 MiB
	// of a process.
	maxExports = 16
	// maxExportsPerKey is the smallest limit that decision 32 f allows.
	maxExportsPerKey = 4
)

// exportSlots limits the exports that run at the same time. A key gets maxExportsPerKey. A team gets at most as many as
// remain free: 8 of 16 if it is alone, and never the last one that another team needs.
type exportSlots struct {
	most    int // in total
	mu      sync.Mutex
	running map[*exportSlot]bool
}

// exportSlot is one running export.
type exportSlot struct {
	slots   *exportSlots
	key     roomsensor.Key
	began   time.Time
	sending bool // whether the rows were counted
}

func newExportSlots(most int) *exportSlots {
	return &exportSlots{most: most, running: map[*exportSlot]bool{}}
}

// acquire returns a slot for an export of a key, which the caller must release. ok is false at the limit.
func (s *exportSlots) acquire(key roomsensor.Key) (slot *exportSlot, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ofKey, ofTeam := 0, 0
	for other := range s.running {
		if other.key.TeamID == key.TeamID {
			ofTeam++
		}
		if other.key.ID == key.ID {
			ofKey++
		}
	}
	if ofKey >= maxExportsPerKey || ofTeam >= s.most-len(s.running) {
		return nil, false
	}
	slot = &exportSlot{slots: s, key: key, began: time.Now()}
	s.running[slot] = true
	return slot, true
}

// send marks the export as one whose rows were counted.
func (s *exportSlot) send() {
	s.slots.mu.Lock()
	defer s.slots.mu.Unlock()
	s.sending = true
}

func (s *exportSlot) release() {
	s.slots.mu.Lock()
	defer s.slots.mu.Unlock()
	delete(s.slots.running, s)
}

// count returns how many exports are sending, or how many are not yet.
func (s *exportSlots) count(sending bool) (n float64) {
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
func (s *exportSlots) oldest() float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	var age time.Duration
	for slot := range s.running {
		age = max(age, time.Since(slot.began))
	}
	return age.Seconds()
}

// metrics returns the metrics of the running exports.
func (s *exportSlots) metrics() []prometheus.Collector {
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
