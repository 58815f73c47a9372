package receiver

import (
	"time"

	"roomsensor/internal/fairshare"
	"roomsensor/internal/roomsensor"
)

const (
	// DefaultMemory is the default memory of a receiver for requests, in bytes. With it, any traffic fits into a process
	// with 512 MiB: what the requests leave behind until the next collection takes as much again, and windows of zstd,
	// checks of uploads and the worker of the process take the rest.
	DefaultMemory = 128 << 20
	// A credential may take an eighth of the memory and its team a quarter, so that neither can take it from others.
	credentialPart, teamPart = 8, 4
	// A quarter of the memory is reserved for teams that take at most a 128th of it (1 MiB by default, 64 small requests),
	// so that a few teams cannot take all of it together.
	reservePart, smallPart = 4, 128

	// shareRetryAfter is the Retry-After of a request beyond a share, whose other requests end soon.
	shareRetryAfter = time.Second
)

// newMemoryLimiter returns the limiter of the bytes of all requests in memory: bodies, and the messages of their
// uploads. Beyond it, requests are refused, so that a fleet that comes back at the same moment cannot exhaust the
// memory of the process. A request that is alone may take more than its share, so that a body of any allowed size
// passes.
func newMemoryLimiter(total int) *fairshare.Limiter {
	return fairshare.New(fairshare.Config{
		Name: "memory", Alone: true, Reserve: total / reservePart, Small: total / smallPart,
		Key: fairshare.Limit{
			Most: total / credentialPart, RetryAfter: shareRetryAfter,
			Message: "This credential has too many bytes of uploads in progress. Send fewer at the same time.",
		},
		Team: fairshare.Limit{
			Most: total / teamPart, RetryAfter: shareRetryAfter,
			Message: "Your team has too many bytes of uploads in progress. Send fewer at the same time.",
		},
		Total: fairshare.Limit{
			Most: total, RetryAfter: queueRetryAfter,
			Message: "The service is busy with uploads. Send the request again after the seconds in Retry-After.",
		},
	})
}

// openMemory returns the memory of a request. The caller must release it.
func (q *request) openMemory(key *roomsensor.Key) *fairshare.Held {
	return q.memory.Open(fairshare.Owner{Team: key.TeamID, Key: key.ID})
}
