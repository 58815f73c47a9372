package upload

import (
	"slices"
	"sync"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"

	"roomsensor/internal/roomsensor"
)

// The limits of decision 46.
const (
	maxIgnoredNames = 50 // different names that are counted one by one
	maxListedNames  = 10 // different names in a response
	maxNameLength   = 64 // characters
)

// otherNames is the label of all names that are not counted one by one.
const otherNames = "other"

// Ignored counts the unknown members of uploads by name (decision 46). It keeps maxIgnoredNames different names, cut to
// maxNameLength, so that its size does not depend on the uploads. The zero Ignored has none.
type Ignored struct {
	index  map[string]int // in names, by the name as it was sent
	names  []string       // different ones, in the order in which they occur
	counts []int          // of members, by name
	others int            // members with further names
}

// add counts some members with a name.
func (i *Ignored) add(name []byte, members int) {
	name = cutName(name)
	at, known := i.index[string(name)]
	if !known {
		if len(i.index) == maxIgnoredNames {
			i.others += members
			return
		}
		at = i.insert(string(name))
	}
	i.counts[at] += members
}

// insert adds a name and returns its position. A key that was pasted as a name by mistake is masked (decision 26).
func (i *Ignored) insert(name string) int {
	shown := roomsensor.Masked(name)
	at := slices.Index(i.names, shown)
	if at < 0 {
		at = len(i.names)
		i.names, i.counts = append(i.names, shown), append(i.counts, 0)
	}
	if i.index == nil {
		i.index = map[string]int{}
	}
	i.index[name] = at
	return at
}

// cutName returns the first maxNameLength characters of a name.
func cutName(name []byte) []byte {
	end := 0
	for range maxNameLength {
		if end == len(name) {
			break
		}
		_, size := utf8.DecodeRune(name[end:])
		end += size
	}
	return name[:end]
}

// Merge adds the members of another upload.
func (i *Ignored) Merge(o *Ignored) {
	for at, name := range o.names {
		i.add([]byte(name), o.counts[at])
	}
	i.others += o.others
}

// Names returns the first names, at most maxListedNames. It is never nil.
func (i *Ignored) Names() []string {
	return append([]string{}, i.names[:min(len(i.names), maxListedNames)]...)
}

// IgnoredCounter is a metric of ignored members by name. The first maxIgnoredNames names of a process have a time
// series each, so that no sender can create any number of them.
type IgnoredCounter struct {
	members *prometheus.CounterVec

	mu    sync.Mutex
	names map[string]bool
}

// NewIgnoredCounter registers a counter with the label name.
func NewIgnoredCounter(registerer prometheus.Registerer, name, help string) *IgnoredCounter {
	c := &IgnoredCounter{
		members: prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{"name"}),
		names:   map[string]bool{},
	}
	c.members.WithLabelValues(otherNames)
	registerer.MustRegister(c.members)
	return c
}

// Add counts the members of uploads.
func (c *IgnoredCounter) Add(i *Ignored) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for at, name := range i.names {
		switch {
		case c.names[name], name == otherNames:
		case len(c.names) < maxIgnoredNames:
			c.names[name] = true
		default:
			name = otherNames
		}
		c.members.WithLabelValues(name).Add(float64(i.counts[at]))
	}
	if i.others > 0 {
		c.members.WithLabelValues(otherNames).Add(float64(i.others))
	}
}
