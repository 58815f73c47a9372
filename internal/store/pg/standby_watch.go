package pg

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"roomsensor/internal/retry"
	"roomsensor/internal/roomsensor"
)

// WatchStandbys checks the standbys every second until ctx ends, and uses those that follow the primary. changed gets
// the result of a check that differs from the one before, at first of each: the host and port of the standby, and nil
// if it is used, otherwise the reason, which begins with a verb.
func (s *DB) WatchStandbys(ctx context.Context, changed func(name string, err error)) {
	reported := make(map[*standby]string, len(s.standbys.list))
	retry.Every(ctx, standbyInterval, func(ctx context.Context) {
		results, err := s.CheckStandbys(ctx)
		if err != nil || ctx.Err() != nil {
			return // Without the primary, no request is admitted.
		}
		for i, b := range s.standbys.list {
			text := fmt.Sprint(fallbackText(results[i]))
			if last, ok := reported[b]; !ok || last != text {
				changed(b.name, results[i])
			}
			reported[b] = text
		}
	})
}

// fallbackText names the kind of an error, so that one whose text varies is reported once.
func fallbackText(err error) string {
	if err == nil {
		return ""
	}
	return fallbackOf(err).String()
}

// CheckStandbys checks all standbys against the present position of the primary, and returns why each is left out.
func (s *DB) CheckStandbys(ctx context.Context) ([]error, error) {
	ctx, cancel := context.WithTimeout(ctx, standbyCheckTimeout)
	defer cancel()
	now := time.Now()
	position, err := s.Position(ctx)
	if err != nil {
		return nil, err
	}
	results := make([]error, len(s.standbys.list))
	var group sync.WaitGroup
	for i, b := range s.standbys.list {
		group.Go(func() {
			replayed, err := s.checkStandby(ctx, b, position)
			b.used.Store(err == nil)
			if err == nil || errors.Is(err, errLag) {
				b.observe(replayed, position.Log, now)
			}
			results[i] = err
		})
	}
	group.Wait()
	return results, nil
}

// checkStandby has a connection of its own, so that it waits for no read.
func (s *DB) checkStandby(ctx context.Context, b *standby, position roomsensor.Position) (int64, error) {
	conn, err := b.watch.Acquire(ctx)
	if err != nil {
		return 0, fmt.Errorf("does not answer: %w", err)
	}
	defer conn.Release()
	replayed, err := s.awaitReplay(ctx, conn, position)
	if err != nil && !errors.Is(err, errLag) && !errors.Is(err, errForeign) {
		err = fmt.Errorf("does not answer: %w", err)
	}
	return replayed, err
}

// StandbyServer is a server of READ_DATABASE_URL, for the command doctor.
type StandbyServer struct {
	Name string // host and port
	// Err is why the API does not read from it: it begins with a verb. The other fields are zero then, but for IsPrimary.
	Err       error
	IsPrimary bool // it is the primary itself
	Feedback  bool // hot_standby_feedback
	// MaxDelay is max_standby_streaming_delay; negative if it is unbounded.
	MaxDelay time.Duration
}

// StandbyServers checks the servers that a URL names against the present position of the primary.
func (s *DB) StandbyServers(ctx context.Context, databaseURL string) ([]StandbyServer, error) {
	on, err := hostServers(databaseURL)
	if err != nil {
		return nil, err
	}
	position, err := s.Position(ctx)
	if err != nil {
		return nil, err
	}
	servers := make([]StandbyServer, len(on))
	for i := range on {
		servers[i].Name = hostOf(on[i].config)
		pool, err := newPool(ctx, on[i], s.role, 1)
		if err != nil {
			return nil, err
		}
		s.inspectStandby(ctx, &standby{watch: pool}, position, &servers[i])
		pool.Close()
	}
	return servers, nil
}

func (s *DB) inspectStandby(ctx context.Context, b *standby, position roomsensor.Position, server *StandbyServer) {
	ctx, cancel := context.WithTimeout(ctx, standbyCheckTimeout)
	defer cancel()
	_, server.Err = s.checkStandby(ctx, b, position)
	if errors.Is(server.Err, errForeign) {
		row, err := s.Queries.StandbyGet(ctx, b.watch)
		server.IsPrimary = err == nil && !row.InRecovery &&
			row.SystemID == position.System && row.Timeline == position.Timeline
	}
	if server.Err != nil {
		return
	}
	row, err := s.Queries.StandbyGetSettings(ctx, b.watch)
	server.Err, server.Feedback = err, row.Feedback
	server.MaxDelay = time.Duration(row.MaxDelayMs) * time.Millisecond
}

// observe records how far a standby has replayed while the primary was at a position.
func (b *standby) observe(replayed, position int64, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if replayed >= b.target && !b.targetAt.IsZero() {
		b.caughtUp, b.targetAt = b.targetAt, time.Time{}
	}
	if b.targetAt.IsZero() {
		b.target, b.targetAt = position, now
	}
	if replayed >= position {
		b.caughtUp, b.targetAt = now, time.Time{}
	}
}

// Position returns the present position of the primary.
func (s *DB) Position(ctx context.Context) (roomsensor.Position, error) {
	row, err := s.Queries.PositionGet(ctx, s.Admission)
	if err != nil {
		return roomsensor.Position{}, fmt.Errorf("reading the position of the primary: %w", Translate(err))
	}
	return roomsensor.Position{System: row.SystemID, Timeline: row.Timeline, Log: row.Flushed}, nil
}

// Standby is the state of a standby.
type Standby struct {
	Name string // host and port
	Used bool
	// Lag is the time since the primary was where the standby is now, in steps of a second; 0 while it is used. It goes on
	// growing while the standby does not answer.
	Lag time.Duration
}

// StandbyStatistics are figures of the reads that a standby may serve, since the start.
type StandbyStatistics struct {
	Standbys  []Standby
	Reads     int64 // that a standby served
	Fallbacks map[Fallback]int64
	Waits     int64 // of reads and checks for a standby to replay the log
	WaitTime  time.Duration
}

// StandbyStatistics returns the state of the standbys, without a request to them.
func (s *DB) StandbyStatistics() StandbyStatistics {
	l := &s.standbys
	stats := StandbyStatistics{
		Reads: l.reads.Load(), Fallbacks: map[Fallback]int64{},
		Waits: l.waits.Load(), WaitTime: time.Duration(l.waitTime.Load()),
	}
	for reason := range fallbacks {
		stats.Fallbacks[reason] = l.fallbacks[reason].Load()
	}
	for _, b := range l.list {
		state := Standby{Name: b.name, Used: b.used.Load()}
		b.mu.Lock()
		if !state.Used && !b.caughtUp.IsZero() {
			state.Lag = time.Since(b.caughtUp)
		}
		b.mu.Unlock()
		stats.Standbys = append(stats.Standbys, state)
	}
	return stats
}
