package mqtt

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/queue"
	"roomsensor/internal/retry"
	"roomsensor/internal/roomsensor"
)

const (
	// stableFor is the least age of a connection after whose end the next one is tried at once.
	stableFor = 10 * time.Second
	// logEvery is the least time between two log entries about messages of a source that are dropped for one reason.
	logEvery = time.Minute
)

var (
	connectBackoff = retry.Backoff{First: 250 * time.Millisecond, Max: 5 * time.Second}
	publishBackoff = retry.Backoff{First: 100 * time.Millisecond, Max: 5 * time.Second}
)

// session passes the messages of one source. Its client id names the session at the broker, which keeps what arrives
// while this process does not run.
type session struct {
	*Bridge

	source  uuid.UUID
	client  string
	filters []string
	logged  map[string]time.Time // when a drop was last logged, by result

	mu      sync.Mutex
	problem error // why there is no connection; nil while there is one
}

// run passes messages until ctx ends.
func (s *session) run(ctx context.Context) {
	for attempt := 0; ctx.Err() == nil; attempt++ {
		began := time.Now()
		if err := s.serve(ctx); ctx.Err() == nil {
			s.set(err)
		}
		if time.Since(began) > stableFor {
			attempt = 0
		}
		_ = connectBackoff.Sleep(ctx, attempt) // The loop ends with ctx.
	}
}

// set records the state of the connection and logs a change.
func (s *session) set(problem error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case problem == nil:
		s.Log.Info().Stringer("source_id", s.source).Msg("connected to the broker")
		s.metrics.connected.Inc()
	case s.problem == nil:
		s.Log.Warn().Stringer("source_id", s.source).Err(problem).Msg("lost the connection to the broker")
		s.metrics.connected.Dec()
	}
	s.problem = problem
}

// serve passes the messages of one connection until it or ctx ends.
func (s *session) serve(ctx context.Context) error {
	c, err := dial(ctx, &s.Config, s.client, s.subscriptions(), func() { s.set(nil) })
	if err != nil {
		return err
	}
	defer c.end()
	for {
		batch, err := c.take()
		if err != nil {
			return err
		}
		if err := s.store(ctx, c, s.choose(batch)); err != nil {
			return err
		}
		if err := c.acknowledge(batch); err != nil {
			return err
		}
	}
}

// subscriptions returns the filters as the broker gets them.
func (s *session) subscriptions() []string {
	filters := slices.Clone(s.filters)
	for i := range filters {
		if s.Share != "" {
			filters[i] = "$share/" + s.Share + "/" + filters[i]
		}
	}
	return filters
}

// choose returns those messages of a batch that the stream must store. It counts and logs the others.
func (s *session) choose(batch []publication) (chosen []queue.Message) {
	source := s.sources.of(s.source)
	for i := range batch {
		p := &batch[i]
		text, result := []byte(nil), ""
		switch {
		case p.retained && !s.Retained:
			result = resultRetained
		case !slices.ContainsFunc(s.filters, func(filter string) bool { return matches(filter, p.topic) }):
			result = resultNoSource // The session has a subscription of an earlier configuration.
		case source == nil:
			result = resultDisabled
		case len(p.payload) > roomsensor.MaxUploadBytes:
			result = resultTooLarge
		default:
			if text = encode(p.topic, p.payload); len(text) > roomsensor.MaxUploadBytes {
				result = resultTooLarge
			}
		}
		if result == "" {
			chosen = append(chosen, queue.Message{Team: &source.TeamID, Source: &source.ID, Text: text})
			continue
		}
		s.metrics.messages.WithLabelValues(result).Inc()
		s.logDrop(result, p.topic)
	}
	return chosen
}

// logDrop logs that a message was dropped, unless it has done so for the same reason lately. Retained messages arrive
// with each subscription.
func (s *session) logDrop(result, topic string) {
	if result == resultRetained || time.Since(s.logged[result]) < logEvery {
		return
	}
	s.logged[result] = time.Now()
	s.Log.Warn().Stringer("source_id", s.source).Str("topic", topic).Str("reason", strings.ReplaceAll(result, "_", " ")).
		Msg("dropped a message; others within a minute are only counted")
}

// store stores messages in the stream. While the stream refuses them, it repeats: until then the broker keeps them, and
// sends no more than it may. It drops them once their source is disabled, and fails when the connection or ctx ends.
// What it has begun, it finishes first.
//
//nolint:contextcheck // That of the connection ends with ctx.
func (s *session) store(ctx context.Context, c *conn, messages []queue.Message) error {
	for attempt := 0; ; attempt++ {
		sequences, err := s.Queue.Publish(context.WithoutCancel(ctx), messages)
		left := messages[:0]
		for i := range messages {
			if sequences[i] == 0 {
				left = append(left, messages[i])
			}
		}
		s.metrics.messages.WithLabelValues(resultStored).Add(float64(len(messages) - len(left)))
		if messages = left; err == nil {
			return nil
		}
		if attempt == 0 {
			s.Log.Warn().Stringer("source_id", s.source).Err(err).Msg("could not store messages in the stream, retrying")
		}
		if publishBackoff.Sleep(c.alive, attempt) != nil {
			return context.Cause(c.alive) //nolint:wrapcheck // It says what failed.
		}
		if s.sources.of(s.source) == nil { // It was disabled meanwhile (A14.1).
			s.metrics.messages.WithLabelValues(resultDisabled).Add(float64(len(messages)))
			s.logDrop(resultDisabled, strings.Join(s.filters, " "))
			return nil
		}
	}
}
