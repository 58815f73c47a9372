package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/retry"
	"roomsensor/internal/roomsensor"
	"roomsensor/test/ledger"
)

const (
	// followInterval is the least time between two requests of a follower that has caught up, so that it stays far below
	// the rate limit of its key.
	followInterval = 2 * time.Second
	// followWait is how long a request waits for a change, and followTimeout how long its response may take.
	followWait    = 10 * time.Second
	followTimeout = 30 * time.Second
	// followRetry is the wait after a request that failed.
	followRetry = 500 * time.Millisecond
	// feedDelay is more than the time within which a change appears (A5.4).
	feedDelay = 3 * time.Second
	// catchUpTimeout bounds the time to read what is left, with the wait for the rate limit.
	catchUpTimeout = 15 * time.Minute
)

// follower keeps a copy of the readings of a team by the change feed (A5), as a client does.
type follower struct {
	service *Service
	http    *http.Client
	key     string
	cursor  string // empty before the first page
	copy    map[ledger.Key]ledger.Row
	items   int // received
	stop    func()
	done    sync.WaitGroup
}

// followed is a page of the feed.
type followed struct {
	Data []struct {
		Device   uuid.UUID `json:"device_id"`
		Bucket   time.Time `json:"bucket_at"`
		CO2      *float32  `json:"co2_ppm"`
		Temp     *float32  `json:"temp_c"`
		Humidity *float32  `json:"humidity_pct"`
		Lux      *float32  `json:"lux"`
		Sound    *float32  `json:"spl_db"`
		Ingested time.Time `json:"ingested_at"`
	} `json:"data"`
	NextCursor string `json:"next_cursor"`
	CaughtUp   bool   `json:"caught_up"`
}

// follow starts a follower of a team, which begins now.
func (s *Service) follow(ctx context.Context, t Team) (*follower, error) {
	f := &follower{
		service: s, key: t.Key, copy: map[ledger.Key]ledger.Row{},
		http: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: followTimeout},
	}
	if err := f.catchUp(ctx); err != nil {
		return nil, err
	}
	ctx, f.stop = context.WithCancel(ctx)
	f.done.Go(func() {
		for ctx.Err() == nil {
			caughtUp, err := f.page(ctx, followWait)
			switch {
			case err != nil:
				_ = retry.Sleep(ctx, followRetry) // The loop ends with ctx.
			case caughtUp:
				_ = retry.Sleep(ctx, followInterval)
			}
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
	complete := time.Now().Add(feedDelay)
	if f.cursor == "" {
		complete = time.Time{} // It begins now.
	}
	err := Await(ctx, catchUpTimeout, followRetry, func(ctx context.Context) error {
		for {
			began := time.Now()
			caughtUp, err := f.page(ctx, 0)
			switch {
			case err != nil:
				return err
			case caughtUp && began.Before(complete):
				return fmt.Errorf("waiting for the last changes")
			case caughtUp:
				return nil
			}
		}
	})
	if err != nil {
		return fmt.Errorf("following the change feed: %w", err)
	}
	return nil
}

// page requests a page and adds it to the copy.
func (f *follower) page(ctx context.Context, wait time.Duration) (caughtUp bool, err error) {
	query := url.Values{"wait": {strconv.Itoa(int(wait / time.Second))}}
	if f.cursor != "" {
		query.Set("cursor", f.cursor)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet,
		"http://"+f.service.API+"/v1/readings/changes?"+query.Encode(), nil)
	if err != nil {
		return false, fmt.Errorf("requesting changes: %w", err)
	}
	request.Header.Set("Authorization", "Bearer "+f.key)
	response, err := f.http.Do(request)
	if err != nil {
		return false, fmt.Errorf("requesting changes: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	switch status := response.StatusCode; {
	case status == http.StatusTooManyRequests || status >= http.StatusInternalServerError:
		seconds, _ := strconv.Atoi(response.Header.Get("Retry-After"))
		_ = retry.Sleep(ctx, time.Duration(seconds)*time.Second) // The caller checks ctx.
		return false, fmt.Errorf("status %d", status)
	case status != http.StatusOK:
		f.service.Unexpected("the change feed answered %s", response.Status)
		return false, fmt.Errorf("status %d", status)
	}
	var page followed
	if err := json.NewDecoder(response.Body).Decode(&page); err != nil {
		return false, fmt.Errorf("reading changes: %w", err)
	}
	f.add(&page)
	return page.CaughtUp, nil
}

// add adds a page to the copy. A reading that is repeated must have changed.
func (f *follower) add(page *followed) {
	for i := range page.Data {
		item := &page.Data[i]
		row := ledger.Row{Key: ledger.KeyOf(item.Device, item.Bucket), IngestedAt: item.Ingested.UTC()}
		for m, x := range map[roomsensor.Metric]*float32{
			roomsensor.CO2: item.CO2, roomsensor.Temp: item.Temp, roomsensor.Humidity: item.Humidity,
			roomsensor.Lux: item.Lux, roomsensor.Sound: item.Sound,
		} {
			if x != nil {
				row.Values.Set(m, *x)
			}
		}
		if before, ok := f.copy[row.Key]; ok && before == row {
			f.service.Unexpected("the change feed repeated a reading that did not change: %v", row)
		}
		f.copy[row.Key] = row
		f.items++
	}
	f.cursor = page.NextCursor
}
