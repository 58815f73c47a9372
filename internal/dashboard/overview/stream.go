package overview

import (
	"context"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/dashboard/page"
	"roomsensor/internal/httpedge"
	"roomsensor/internal/roomsensor"
)

const (
	// aliveInterval is how often a page hears that its data is current, also if nothing changed. A page that hears nothing
	// for more than twice as long shows its data as outdated.
	aliveInterval = 15 * time.Second
	// checkInterval is how often the session and the membership of a stream are checked.
	checkInterval = time.Minute
)

// tileStream sends the tiles of a page as server-sent events:
//
//	tile   a tile that is new or changed, with the id of the tile before it
//	gone   the id of a tile that the page no longer shows
//	state  the page is complete and current; its id is the token
//	trouble  the data cannot be read; the text says why
//	end    the person is signed out or left the team; the text says so
type tileStream struct {
	pages  *Pages
	visit  *page.Visit
	stream *stream
	filter overviewFilter
	last   *overview // that the page shows; nil at the start
	lastAt time.Time // when it was sent: with last, it says what the page shows
	since  int64     // version that the page shows
	style  string    // the tileStyle that it shows
}

// Stream handles the stream of a page.
func (p *Pages) Stream(ctx context.Context, v *page.Visit) error {
	w, err := p.overviews.get(ctx, v.Team.ID)
	if err != nil {
		return err
	}
	st, err := p.live.open(v.User.ID, v.Team.ID) //nolint:contextcheck // Other streams use the watcher, too.
	if err != nil {
		return err
	}
	defer p.live.close(st)
	f, _ := readFilter(v.Echo.QueryParams()) // The page shows the problem.
	response := v.Echo.Response()
	response.Header().Set("Content-Type", "text/event-stream")
	response.Header().Set("X-Accel-Buffering", "no") // nginx would keep events until it has many.
	response.WriteHeader(http.StatusOK)
	if v.Echo.Request().Method == http.MethodHead {
		return nil
	}
	// The deadline of reading the request would end the stream.
	if err := http.NewResponseController(response).SetReadDeadline(time.Time{}); err != nil {
		return fmt.Errorf("starting a stream: %w", err)
	}
	style := tileStyle(v)
	t := &tileStream{
		pages: p, visit: v, stream: st, filter: f,
		since: w.changedSince(v.Echo.QueryParam("since"), style), style: style,
	}
	if err := t.sendChanges(w); err != nil {
		return err
	}
	return t.run(ctx)
}

// run sends what changes until the person leaves, or the process stops.
func (t *tileStream) run(ctx context.Context) error {
	alive, check := time.NewTicker(aliveInterval), time.NewTicker(t.pages.live.checkEvery)
	defer alive.Stop()
	defer check.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return nil
		case <-t.pages.live.stopped:
			return nil
		case <-t.stream.woken:
			err = t.update()
		case <-alive.C:
			err = t.update()
		case <-check.C:
			err = t.check() //nolint:contextcheck // That of the request has the session as it was.
		}
		if errors.Is(err, errEnded) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// errEnded ends a stream after the page received the reason.
var errEnded = errors.New("the stream has ended")

// update sends the newest overview, or that it cannot be read.
func (t *tileStream) update() error {
	w, err := t.pages.live.current(t.stream)
	switch {
	case err != nil:
		return t.send("trouble", "", textEvent{"The data cannot be read at the moment."})
	case w == nil:
		return nil
	}
	return t.sendChanges(w)
}

// check ends the stream of a person who is signed out or left the team. It also notices other settings of the
// team and of the person.
func (t *tileStream) check() error {
	v := t.visit
	switch err := v.Recheck(); {
	case errors.Is(err, page.ErrSignedOut), errors.Is(err, roomsensor.ErrNotFound):
		if err := t.send("end", "", textEvent{"You are signed out, or you left the team."}); err != nil {
			return err
		}
		return errEnded
	case err != nil:
		return nil //nolint:nilerr // The next check may succeed.
	}
	if style := tileStyle(v); style != t.style {
		t.style, t.since, t.last = style, 0, nil
		return t.update()
	}
	return nil
}

// textEvent is the data of trouble and end.
type textEvent struct {
	Text string `json:"text"`
}

// tileEvent is the data of tile. After is empty for the first tile of its group.
type tileEvent struct {
	ID    string        `json:"id"`
	Group string        `json:"group"`
	After string        `json:"after"`
	HTML  template.HTML `json:"html"`
}

// goneEvent is the data of gone.
type goneEvent struct {
	ID string `json:"id"`
}

// stateEvent is the data of state.
type stateEvent struct {
	At       time.Time `json:"at"`
	Headline string    `json:"headline"`
	Summary  string    `json:"summary"`
	Shown    int       `json:"shown"` // tiles of the page
}

// sendChanges sends the tiles that changed since what the page shows: in an upload, or by the time, which makes values
// old and ends the night.
func (t *tileStream) sendChanges(w *overview) error {
	shown := map[uuid.UUID]room{}
	if t.last != nil {
		for _, r := range t.last.choose(&t.filter, &t.visit.Team, t.lastAt).rooms {
			shown[r.ID] = r
		}
	}
	t.visit.Now = t.pages.now()
	selected, last := w.choose(&t.filter, &t.visit.Team, t.visit.Now), tileEvent{}
	for _, r := range selected.rooms {
		event := tileEvent{ID: r.ID.String(), Group: r.group}
		if last.Group == event.Group {
			event.After = last.ID
		}
		before, known := shown[r.ID]
		if r.version > t.since || t.last != nil && (!known || before.air != r.air || before.group != r.group) {
			var err error
			if event.HTML, err = r.render(t.visit, t.style); err != nil {
				return err
			}
			if err := t.write("tile", "", event); err != nil {
				return err
			}
		}
		delete(shown, r.ID)
		last = event
	}
	for id := range shown {
		if err := t.write("gone", "", goneEvent{id.String()}); err != nil {
			return err
		}
	}
	t.last, t.lastAt, t.since = w, t.visit.Now, w.version
	return t.send("state", w.token(t.style), stateEvent{
		w.at.UTC(), selected.headline(len(w.tiles)), selected.summary(len(w.tiles)), len(selected.rooms),
	})
}

// send writes an event and flushes.
func (t *tileStream) send(name, id string, data any) error {
	if err := t.write(name, id, data); err != nil {
		return err
	}
	if err := http.NewResponseController(t.visit.Echo.Response()).Flush(); err != nil {
		return fmt.Errorf("sending events: %w", err)
	}
	return nil
}

func (t *tileStream) write(name, id string, data any) error {
	w := t.visit.Echo.Response()
	if id != "" {
		id = "id: " + id + "\n"
	}
	text, err := httpedge.EncodeJSON(data) // On one line.
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(w, "event: %s\n%sdata: %s\n\n", name, id, text); err != nil {
		return fmt.Errorf("sending an event: %w", err)
	}
	return nil
}
