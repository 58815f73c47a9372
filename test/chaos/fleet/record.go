package fleet

import (
	"math"
	"sync"
	"time"
)

// kind is a kind of request.
type kind string

// The kinds of requests. Visible is not a request: it is the time from the instant at which an upload was due until the
// API returned its reading.
const (
	uploads kind = "upload"
	polls   kind = "current"
	exports kind = "export"
	pages   kind = "page"
	visible kind = "visible"
)

var kinds = []kind{uploads, polls, exports, pages, visible}

// recorder collects the latencies and the failures of requests. It is safe for concurrent use.
type recorder struct {
	mu       sync.Mutex
	part     map[kind]*histogram // since the last call of next
	total    map[kind]*histogram
	failures map[string]int // by kind and reason
	failed   int
}

func newRecorder() *recorder {
	r := &recorder{part: map[kind]*histogram{}, total: map[kind]*histogram{}, failures: map[string]int{}}
	for _, k := range kinds {
		r.part[k], r.total[k] = &histogram{}, &histogram{}
	}
	return r
}

// answered records a request that was answered, however late.
func (r *recorder) answered(k kind, took time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.part[k].add(took)
	r.total[k].add(took)
}

// maxReasons bounds the reasons of failures that a report lists.
const maxReasons = 50

// fail records a request that failed.
func (r *recorder) fail(k kind, reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed++
	key := string(k) + ": " + reason
	if _, known := r.failures[key]; !known && len(r.failures) >= maxReasons {
		key = "other reasons"
	}
	r.failures[key]++
}

// next returns the latencies since the last call, and the number of failures since the start.
func (r *recorder) next() (latencies map[kind]Latency, failed int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	latencies = map[kind]Latency{}
	for k, h := range r.part {
		latencies[k], r.part[k] = h.latency(), &histogram{}
	}
	return latencies, r.failed
}

// all returns the latencies since the start.
func (r *recorder) all() map[kind]Latency {
	r.mu.Lock()
	defer r.mu.Unlock()
	latencies := map[kind]Latency{}
	for k, h := range r.total {
		latencies[k] = h.latency()
	}
	return latencies
}

// histogram counts durations from 1 µs to an hour in steps of 2 %, so that a quantile is at most 2 % too high. It takes
// the same memory for any number of durations.
type histogram struct {
	counts [steps]int
	count  int
	max    time.Duration
}

const (
	step  = 1.02
	steps = 1120 // log(1 h / 1 µs) / log(step), and one for longer ones
)

func (h *histogram) add(d time.Duration) {
	i := 0
	if us := float64(d) / float64(time.Microsecond); us > 1 {
		i = min(steps-1, int(math.Ceil(math.Log(us)/math.Log(step))))
	}
	h.counts[i]++
	h.count++
	h.max = max(h.max, d)
}

// quantile returns a duration that the given share of the durations does not exceed; 0 if there are none.
func (h *histogram) quantile(q float64) time.Duration {
	rank := int(math.Ceil(q * float64(h.count)))
	for i, n := range h.counts {
		if rank -= n; rank <= 0 && h.count > 0 {
			return min(h.max, time.Duration(math.Pow(step, float64(i))*float64(time.Microsecond)))
		}
	}
	return h.max
}

// Latency describes the latencies of a kind of request, from the instant at which each was due.
type Latency struct {
	Requests int     `json:"requests"` // that were answered
	P50      float64 `json:"p50_seconds"`
	P99      float64 `json:"p99_seconds"`
	Max      float64 `json:"max_seconds"`
}

func (h *histogram) latency() Latency {
	return Latency{h.count, seconds(h.quantile(0.5)), seconds(h.quantile(0.99)), seconds(h.max)}
}

// seconds rounds to a tenth of a millisecond.
func seconds(d time.Duration) float64 { return d.Round(100 * time.Microsecond).Seconds() }
