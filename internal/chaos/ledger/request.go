package ledger

import (
	"bytes"
	"cmp"
	"errors"
	"math/rand/v2"
	"slices"
	"time"
)

// Path is the way on which a request is sent.
type Path int

// The paths.
const (
	Receiver Path = iota // over HTTP, with the credential of a team
	Stream               // straight into the stream, one upload a message
)

// Request is what one sender sends at once.
type Request struct {
	Due     time.Duration // from the start of the trial
	Path    Path
	Team    int // whose credential it carries
	Uploads []*Upload
	// Spoilt is a line that makes the receiver refuse all of the request; empty: none.
	Spoilt string
	// Abandoned is not sent again when its outcome is not OK.
	Abandoned bool

	rank float64 // its place in the order of requests
}

// Body is the body of a request to the receiver, as JSON Lines.
func (r *Request) Body() []byte {
	lines := make([][]byte, 0, len(r.Uploads)+1)
	for _, u := range r.Uploads {
		lines = append(lines, u.Text)
	}
	if r.Spoilt != "" {
		lines = append(lines, []byte(r.Spoilt))
	}
	return bytes.Join(lines, []byte("\n"))
}

// Options say which requests are wanted.
type Options struct {
	Seed     uint64
	Readings int           // that must be stored, at least
	Span     time.Duration // over which the requests are due
	Now      time.Time     // no reading is younger
	Teams    int
	Units    []*Unit // each of some team, and no team without one
}

// Make makes requests that are different at every seed and the same at the same one.
func Make(o Options) ([]*Request, error) {
	m := &maker{
		Options: o,
		dice:    rand.New(rand.NewPCG(o.Seed, 1)), //nolint:gosec // It must be the same at the same seed.
		books:   map[*Unit]*book{},
	}
	for _, u := range o.Units {
		m.books[u] = newBook(u, o.Now)
	}
	for m.readings < o.Readings {
		m.one()
		for _, b := range m.books {
			if b.overrun() {
				return nil, errors.New("making uploads: so many readings need more units")
			}
		}
	}
	slices.SortStableFunc(m.requests, func(a, b *Request) int { return cmp.Compare(a.rank, b.rank) })
	last := m.requests[len(m.requests)-1].rank
	for _, r := range m.requests {
		r.Due = time.Duration(float64(o.Span) * r.rank / (last + 1))
	}
	return m.requests, nil
}
