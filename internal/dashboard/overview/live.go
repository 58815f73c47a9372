package overview

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"roomsensor/internal/fairshare"
	"roomsensor/internal/retry"
)

const (
	// watchInterval is how often the overview of a team is read while pages show it.
	watchInterval = 2 * time.Second
	// maxStreams is how many pages are kept up to date at the same time. Each takes about 30 KB.
	maxStreams = 1000
	// maxPersonStreams is how many of these one person may have: as many as browsers open to one host.
	maxPersonStreams = 6
	// streamRetryAfter is the Retry-After of a page beyond these limits, which says that it does not update by itself.
	streamRetryAfter = time.Minute
)

// live keeps pages up to date. It reads the overview of each team that has streams, once for all of them.
type live struct {
	limiter    *fairshare.Limiter // of streams
	overviews  *overviews
	checkEvery time.Duration
	stopped    chan struct{} // closed when the process stops

	mu      sync.Mutex
	streams map[*stream]bool
	watched map[uuid.UUID]*watcher
}

// stream is a page that is kept up to date.
type stream struct {
	*fairshare.Held

	teamID uuid.UUID
	woken  chan struct{} // gets a value after each change of the watcher's state
}

// watcher reads the overview of a team.
type watcher struct {
	streams int
	cancel  context.CancelFunc
	current *overview // nil before the first read
	err     error     // of the last read
}

func newLive(o *overviews, checkEvery time.Duration) *live {
	limiter := fairshare.New(fairshare.Config{
		Name: "streams",
		Key: fairshare.Limit{
			Most: maxPersonStreams, RetryAfter: streamRetryAfter,
			Message: "You have too many pages of the dashboard open. Close some.",
		},
		Team: fairshare.Limit{Most: fairshare.Remaining},
		Total: fairshare.Limit{
			Most: maxStreams, RetryAfter: streamRetryAfter,
			Message: "Too many pages are kept up to date at the moment.",
		},
	})
	return &live{
		limiter: limiter, overviews: o, checkEvery: checkEvery, stopped: make(chan struct{}),
		streams: map[*stream]bool{}, watched: map[uuid.UUID]*watcher{},
	}
}

// open admits a stream, unless there are too many. The caller must close the stream.
func (l *live) open(personID, teamID uuid.UUID) (*stream, error) {
	held, err := l.limiter.Try(fairshare.Owner{Team: teamID, Key: personID.String()}, 1)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	st := &stream{Held: held, teamID: teamID, woken: make(chan struct{}, 1)}
	l.streams[st] = true
	w := l.watched[teamID]
	if w == nil {
		ctx, cancel := context.WithCancel(context.Background())
		w = &watcher{cancel: cancel}
		l.watched[teamID] = w
		go retry.Every(ctx, watchInterval, func(ctx context.Context) { l.read(ctx, teamID, w) })
	}
	w.streams++
	return st, nil
}

// close removes a stream. Without streams, the watcher of a team ends.
func (l *live) close(st *stream) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.streams, st)
	st.Release()
	w := l.watched[st.teamID]
	if w.streams--; w.streams == 0 {
		w.cancel()
		delete(l.watched, st.teamID)
	}
}

// stop ends all streams.
func (l *live) stop() { close(l.stopped) }

// read reads the overview of a team, and wakes the streams if it changed.
func (l *live) read(ctx context.Context, teamID uuid.UUID, w *watcher) {
	current, err := l.overviews.get(ctx, teamID)
	if ctx.Err() != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	changed := (err == nil) != (w.err == nil) || w.current == nil || err == nil && current.differs(w.current)
	if w.err = err; err == nil {
		w.current = current
	}
	if !changed {
		return
	}
	for st := range l.streams {
		if st.teamID == teamID {
			st.wake()
		}
	}
}

// differs reports whether a page would look different than with an earlier overview.
func (w *overview) differs(last *overview) bool {
	if len(w.tiles) != len(last.tiles) || w.partial != last.partial {
		return true
	}
	for _, t := range w.tiles {
		if t.version > last.version {
			return true
		}
	}
	return false
}

// wake makes the stream look at the watcher, unless it is about to.
func (st *stream) wake() {
	select {
	case st.woken <- struct{}{}:
	default:
	}
}

// current returns the newest overview of the team of a stream, nil before the first, and the error of the last read.
func (l *live) current(st *stream) (*overview, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.watched[st.teamID]
	return w.current, w.err
}

// register registers the metrics of streams. registerer may be nil.
func (l *live) register(registerer prometheus.Registerer) {
	gauge := func(name, help string, value func() int) {
		promauto.With(registerer).NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 {
			l.mu.Lock()
			defer l.mu.Unlock()
			return float64(value())
		})
	}
	gauge("roomsensor_dashboard_streams", "Pages that are kept up to date.", func() int { return len(l.streams) })
	gauge("roomsensor_dashboard_watched_teams", "Teams whose overview is read every 2 seconds for these pages.",
		func() int { return len(l.watched) })
}
