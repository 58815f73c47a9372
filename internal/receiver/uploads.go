package receiver

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/nats-io/nats.go"

	"roomsensor/internal/fairshare"
	"roomsensor/internal/httpedge"
	"roomsensor/internal/queue"
	"roomsensor/internal/roomsensor"
)

const (
	// dryRunParameter is the parameter of POST /uploads (A8.1).
	dryRunParameter = "dry_run"
	// queueRetryAfter is the Retry-After while the stream is full or unavailable: a purge or a failover takes about as
	// long.
	queueRetryAfter = 10 * time.Second
	// backlogRetryAfter is the Retry-After while the backlog of a team is full: a worker stores a fifth of that of a
	// stream of the default size meanwhile.
	backlogRetryAfter = 5 * time.Second
)

// receipt is the response to uploads that the stream has stored (decision 46 b).
type receipt struct {
	Stored        int      `json:"stored"` // uploads
	Readings      int      `json:"readings"`
	IgnoredFields []string `json:"ignored_fields"`
}

// takeUploads answers POST /uploads: with 202 after the stream has stored all uploads, or with the report of a dry run.
func (q *request) takeUploads(key *roomsensor.Key, query httpedge.Query) error {
	dryRun, err := isDryRun(query)
	if err != nil {
		return err
	}
	take, status := q.publish, http.StatusAccepted
	if dryRun {
		take, status = q.dryRun, http.StatusOK
	}
	result, err := q.withBody(key, MaxBody, func(text []byte, memory *fairshare.Held) (any, error) {
		u, err := split(text, memory)
		if err != nil {
			return nil, err
		}
		q.log.Rows = len(u.messages)
		return take(key, u)
	})
	if err != nil {
		return err
	}
	return q.answer(status, result)
}

// isDryRun reads the parameter dry_run. It is strict, so that a misspelled value stores nothing (A8.5).
func isDryRun(query httpedge.Query) (bool, error) {
	text := query.Get(dryRunParameter)
	switch {
	case text == nil || *text == "false":
		return false, nil
	case *text == "true":
		return true, nil
	}
	return false, roomsensor.Invalid(dryRunParameter, "dry_run must be true or false. Nothing of the request was stored.")
}

// withBody reads the body, of most bytes, and returns the result of a function that takes it, if the credential is
// still valid then: a body may take 15 minutes. The memory of the body is given back before the response is sent.
func (q *request) withBody(
	key *roomsensor.Key, most int, take func(text []byte, memory *fairshare.Held) (any, error),
) (result any, err error) {
	memory := q.openMemory(key)
	defer memory.Release()
	text, err := q.readBody(key, memory, most)
	if err != nil {
		return nil, err
	}
	q.log.Bytes = int64(len(text))
	if err := q.recheck(); err != nil {
		return nil, err
	}
	return take(text, memory)
}

// publish stores uploads in the stream. It returns a receipt only after the stream has stored all of them.
func (q *request) publish(key *roomsensor.Key, u *uploads) (any, error) {
	for i := range u.messages {
		u.messages[i].Team = &key.TeamID
	}
	if _, err := q.Queue.Publish(q.r.Context(), u.messages); err != nil {
		return nil, publishError(err)
	}
	q.metrics.ignored.Add(&u.ignored)
	q.metrics.count(len(u.messages), int(q.log.Bytes))
	return &receipt{len(u.messages), u.readings, u.ignored.Names()}, nil
}

// publishError returns the public error of a request that the stream has not stored.
func publishError(err error) error {
	switch {
	case errors.Is(err, queue.ErrBacklog):
		return &roomsensor.Error{
			Code: roomsensor.CodeRateLimitExceeded, RetryAfter: backlogRetryAfter, Limit: "backlog.team",
			Message: "Too many uploads of your team are not stored yet. Wait " + httpedge.Wait(backlogRetryAfter) +
				", then send the whole request again, and send more slowly. Nothing of the request was stored.",
		}
	case errors.Is(err, nats.ErrMaxPayload):
		return roomsensor.NewError(roomsensor.CodeRequestTooLarge, "",
			"An upload is larger than this installation accepts. Send its readings in several uploads.")
	}
	return fmt.Errorf("%w: %w", httpedge.Overloaded(queueRetryAfter,
		"The queue is full or unavailable. Send the whole request again after the seconds in Retry-After."), err)
}
