package harness

import (
	"context"
	"fmt"
	"sync"
	"time"

	"roomsensor/client"
	"roomsensor/internal/retry"
	"roomsensor/test/ledger"
)

const (
	// feedDelay is more than the time within which a change appears (A5.4).
	feedDelay = 3 * time.Second
	// catchUpTimeout bounds the time to read what is left, with the wait for the rate limit.
	catchUpTimeout = 15 * time.Minute
)

// follower keeps a copy of the readings of a team by the change feed (A5), as a client does.
type follower struct {
	service  *Service
	client   *client.Client
	position client.Position // empty before the first page
	copy     map[ledger.Key]ledger.Row
	items    int // received
	stop     func()
	done     sync.WaitGroup
}

// follow starts a follower of a team, which begins now.
func (s *Service) follow(ctx context.Context, t Team) (*follower, error) {
	c, err := NewClient(s.API, t.Key)
	if err != nil {
		return nil, err
	}
	f := &follower{service: s, client: c, copy: map[ledger.Key]ledger.Row{}}
	if err := f.read(ctx, client.ChangeQuery{UntilCaughtUp: true}); err != nil {
		return nil, err
	}
	ctx, f.stop = context.WithCancel(ctx)
	f.done.Go(func() {
		if err := f.read(ctx, client.ChangeQuery{}); ctx.Err() == nil {
			s.Unexpected("%v", err)
		}
	})
	return f, nil
}

// end ends the requests of the follower, and reads what is left.
func (f *follower) end(ctx context.Context) error {
	f.stop()
	f.done.Wait()
	return f.catchUp(ctx)
}

// catchUp reads until the follower has everything that was committed before the call.
func (f *follower) catchUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, catchUpTimeout)
	defer cancel()
	if err := retry.Sleep(ctx, feedDelay); err != nil {
		return fmt.Errorf("following the change feed: %w", err)
	}
	return f.read(ctx, client.ChangeQuery{UntilCaughtUp: true})
}

// read adds the pages after the position to the copy. The client sends requests again for as long as the service cannot
// answer.
func (f *follower) read(ctx context.Context, q client.ChangeQuery) error {
	for page, err := range f.client.Follow(ctx, q, f.position) {
		if err != nil {
			return fmt.Errorf("following the change feed: %w", err)
		}
		f.add(&page)
	}
	return nil
}

// add adds a page to the copy. A reading that is repeated must have changed.
func (f *follower) add(page *client.Changes) {
	for i := range page.Readings {
		row := rowOf(&page.Readings[i])
		row.IngestedAt = page.Readings[i].IngestedAt.UTC()
		if before, ok := f.copy[row.Key]; ok && before == row {
			f.service.Unexpected("the change feed repeated a reading that did not change: %v", row)
		}
		f.copy[row.Key] = row
		f.items++
	}
	f.position = page.Position
}
