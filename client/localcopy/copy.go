package localcopy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"time"

	"roomsensor/client"
	"roomsensor/client/export"
)

const (
	// stateVersion changes when another program could not continue a copy of this one.
	stateVersion = 2
	// oncePatience limits the wait of a run with Once for a service that does not answer.
	oncePatience = 15 * time.Minute
	// listsEvery is how often the lists are read again.
	listsEvery = time.Hour
	// futureMargin is how far the first load reaches into the future, for clocks that differ and for readings whose time
	// is up to 10 minutes after their arrival (decision 41 a).
	futureMargin = 24 * time.Hour
	// sinceMargin is how much earlier the feed begins than the first load, and than the last complete request if its
	// cursor was lost. It covers clocks that differ, transactions that were open (A5.4), and readings that the
	// aggregates do not count yet (A1.8).
	sinceMargin = time.Hour
	// maxSince is the oldest time from which the feed can be read again (A5.1), with a margin.
	maxSince = 29 * 24 * time.Hour
)

// Options say how a copy runs.
type Options struct {
	// From is the time from which on a new copy has readings, also late ones. The zero time means all.
	From time.Time
	// Once ends Run when the copy has caught up.
	Once bool
	// Parallel is the number of simultaneous requests of the first load. 0 means the default of export.
	Parallel int
	// Progress is called after each step, and Load during the first load, not concurrently. They may be nil.
	Progress func(Status)
	Load     func(export.Status)
}

// Status is the progress of a copy.
type Status struct {
	Phase            Phase
	Files, FilesDone int   // of the first load
	Changes          int64 // that this run stored
	CaughtUp         bool
	Note             string // what happened, if it is unusual
}

// Result describes a copy after Run.
type Result struct {
	TeamID     string    `json:"team_id"`
	Phase      Phase     `json:"phase"`
	Imported   int64     `json:"imported"` // readings of the first load, in this run
	Changes    int64     `json:"changes"`  // changes that this run stored
	CaughtUpAt time.Time `json:"caught_up_at"`
	ListsAt    time.Time `json:"lists_at"` // as in State
}

// copier is one run of a copy.
type copier struct {
	client  *client.Client
	store   Store
	options Options
	state   State

	imported, changes int64
	listsAt           time.Time // from when on listsEvery counts
}

// Run creates or continues a copy, and follows the changes until ctx ends or, with Once, until it has caught up. When
// ctx ends it returns the result with the error of ctx. The copy is exact in any case.
func Run(ctx context.Context, api *client.Client, store Store, options Options) (*Result, error) {
	c := &copier{client: api, store: store, options: options}
	err := c.run(ctx)
	return &Result{
		TeamID: c.state.Team.String(), Phase: c.state.Phase, Imported: c.imported, Changes: c.changes,
		CaughtUpAt: c.state.CaughtUpAt, ListsAt: c.state.ListsAt,
	}, err
}

func (c *copier) run(ctx context.Context) error {
	if err := c.open(ctx); err != nil {
		return err
	}
	for {
		done, err := c.phase(ctx)
		if c.state.Phase == Following && lostPosition(err) {
			done, err = false, c.resynchronize(ctx, err)
		}
		if done || err != nil {
			return err
		}
	}
}

// phase does what the state says, and reports whether nothing is left.
func (c *copier) phase(ctx context.Context) (done bool, err error) {
	switch c.state.Phase {
	case Loading:
		return false, c.load(ctx)
	case Importing:
		return false, c.importFiles(ctx)
	case Following:
		return true, c.follow(ctx)
	}
	return false, fmt.Errorf("the copy is in the unknown phase %q", c.state.Phase)
}

// open reads the state, or begins a new copy.
func (c *copier) open(ctx context.Context) error {
	key, err := c.client.Team(ctx)
	if err != nil {
		return fmt.Errorf("reading the team of the key: %w", err)
	}
	state, found, err := c.store.State(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("reading the state of the copy: %w", err)
	case !found:
		c.state = State{Version: stateVersion, Team: key.Team.ID, From: c.options.From}
		return c.begin(ctx)
	case state.Version != stateVersion:
		return fmt.Errorf("the copy was written by another version of this program (%d). "+
			"Remove the copy, and make a new one", state.Version)
	case state.Team != key.Team.ID:
		return fmt.Errorf("the copy is of team %s, and the key of team %s. Use a key of that team, or another target",
			state.Team, key.Team.ID)
	case !c.options.From.IsZero() && !c.options.From.Equal(state.From):
		return fmt.Errorf("the copy begins at %s. Omit the start, or use another target",
			state.From.Format(time.RFC3339))
	}
	c.state = state
	return nil
}

// begin takes a position in the feed, and the window of the first load. What was committed before is in the exports
// that follow, and what is committed later is in the feed.
func (c *copier) begin(ctx context.Context) error {
	if err := os.RemoveAll(c.store.LoadDir()); err != nil { // Of a copy that was removed while it loaded.
		return fmt.Errorf("removing the files of another load: %w", err)
	}
	now := time.Now().UTC().Truncate(time.Second)
	page, err := c.firstPage(ctx, now.Add(-sinceMargin))
	if err != nil {
		return err
	}
	s := c.state
	s.Phase, s.Position = Loading, page.Position
	if s.From.IsZero() {
		s.From = export.Earliest
	}
	s.To = now.Add(futureMargin)
	if s.LoadFrom, err = c.firstDay(ctx, s.From, s.To); err != nil {
		return err
	}
	return c.commit(ctx, c.changesOf(&page), s)
}

// firstPage returns the first page of a new feed since a time.
func (c *copier) firstPage(ctx context.Context, since time.Time) (client.Changes, error) {
	query := client.ChangeQuery{Since: since, Deletions: true, UntilCaughtUp: true}
	for page, err := range c.client.Follow(ctx, query, "") {
		if err != nil {
			return page, fmt.Errorf("reading the change feed from its start: %w", err)
		}
		return page, nil
	}
	return client.Changes{}, ctx.Err()
}

func (c *copier) commit(ctx context.Context, changes Changes, s State) error {
	if err := c.store.Commit(ctx, changes, s); err != nil {
		return fmt.Errorf("writing the copy: %w", err)
	}
	c.state = s
	c.changes += int64(changes.count())
	return nil
}

func (c *copier) report(s Status) {
	if c.options.Progress != nil {
		s.Changes = c.changes
		c.options.Progress(s)
	}
}

// lostPosition reports whether the service no longer accepts the position: it expired, or it belongs to another key.
func lostPosition(err error) bool {
	return client.HasCode(err, client.CodeCursorInvalid) || client.HasCode(err, client.CodeCursorTeamMismatch)
}

// ErrForgotten reports that the service does not know a position that it issued recently. It was restored from a
// backup, so that the copy may have readings that the service lacks.
var ErrForgotten = errors.New("the service was restored from a backup: it does not know the position of the copy, " +
	"which may have readings that the service lacks. Remove the copy, and make a new one")

// resynchronize continues without the position. If it expired, all readings are loaded again. If the key is another
// one, the feed is read from a time (A5.8). Otherwise the error is ErrForgotten.
func (c *copier) resynchronize(ctx context.Context, cause error) error {
	c.report(Status{Phase: c.state.Phase, Note: fmt.Sprintf("the position is no longer valid: %v", cause)})
	if time.Since(c.state.CaughtUpAt) > maxSince {
		return c.begin(ctx)
	}
	if client.HasCode(cause, client.CodeCursorInvalid) {
		return fmt.Errorf("%w: %w", ErrForgotten, cause)
	}
	return c.followAgain(ctx)
}

// followAgain reads the feed from before the copy had caught up (A5.8).
func (c *copier) followAgain(ctx context.Context) error {
	page, err := c.firstPage(ctx, c.state.CaughtUpAt.Add(-sinceMargin))
	if err != nil {
		return err
	}
	s := c.state
	s.Position = page.Position
	return c.commit(ctx, c.changesOf(&page), s)
}

// errSilent ends a run with Once.
var errSilent = fmt.Errorf("the service did not answer for %s", oncePatience)

// follow stores changes: first all that are visible, then, unless Once, those that arrive.
func (c *copier) follow(ctx context.Context) error {
	if err := c.readFeed(ctx, true); err != nil || c.options.Once {
		return err
	}
	return c.readFeed(ctx, false)
}

// readFeed stores changes in batches. It ends with ctx, or when the copy has caught up.
func (c *copier) readFeed(ctx context.Context, untilCaughtUp bool) error {
	feed, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if c.listsAt.IsZero() {
		c.listsAt = time.Now()
	}
	patience := oncePatience
	if !c.options.Once {
		patience = math.MaxInt64
	}
	silent := time.AfterFunc(patience, func() { cancel(errSilent) })
	defer silent.Stop()
	size, age := c.store.Batch()
	began := time.Now()
	var changes Changes
	s := c.state
	query := client.ChangeQuery{Deletions: true, UntilCaughtUp: untilCaughtUp}
	for page, err := range c.client.Follow(feed, query, s.Position) {
		if err != nil {
			err = cmp.Or(context.Cause(feed), err)
			return errors.Join(fmt.Errorf("reading changes: %w", err), c.keep(ctx, changes, s))
		}
		silent.Stop() // Until the service is asked again.
		changes.add(c.changesOf(&page))
		s.Position = page.Position
		if page.CaughtUp {
			s.CaughtUpAt = time.Now().UTC()
		}
		last := page.CaughtUp && untilCaughtUp
		if !last && changes.count() < size && time.Since(began) < age {
			silent.Reset(patience)
			continue
		}
		if err := c.commit(ctx, changes, s); err != nil {
			return err
		}
		// After the readings, so that the assignments of all of them are there when the copy has caught up.
		if last || time.Since(c.listsAt) >= listsEvery {
			if err := c.refreshLists(ctx); err != nil {
				return err
			}
		}
		changes, began, s = Changes{Rows: changes.Rows[:0]}, time.Now(), c.state
		c.report(Status{Phase: Following, CaughtUp: page.CaughtUp})
		silent.Reset(patience)
	}
	return nil
}

// keep commits what was read before an error, also when ctx has ended.
func (c *copier) keep(ctx context.Context, changes Changes, s State) error {
	if changes.count() == 0 {
		return nil
	}
	return c.commit(context.WithoutCancel(ctx), changes, s)
}

// changesOf returns the changes that belong to the copy, and takes over the readings of the page. The feed has late
// readings from before its start too.
func (c *copier) changesOf(page *client.Changes) Changes {
	return Changes{Deleted: page.Deleted, Rows: slices.DeleteFunc(page.Readings, func(r client.DeviceReading) bool {
		return r.BucketAt.Before(c.state.From)
	})}
}
