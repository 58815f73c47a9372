package roomsensor

import (
	"crypto/sha256"
	"time"
)

// RateLimit is the number of requests of one key that pass in any RateWindow (spec 8, Rate).
const (
	RateLimit  = 600
	RateWindow = 10 * time.Minute
)

// RateVerdict says whether a request passes the limit of its key (decision 25).
type RateVerdict struct {
	Allowed   bool
	Remaining int // requests that would pass right now, after this one
	// Reset is the time until the oldest counted request leaves the window,
	// which is when a request passes that was denied.
	Reset time.Duration
}

// Once identifies a change that must run once, however often it is sent (decision 23).
type Once struct {
	KeyID      string // of the API key
	Method     string
	Path       string // with the id in lower case, without the query
	Key        string // the Idempotency-Key
	BodySHA256 [sha256.Size]byte
}

// Database names the edition of TimescaleDB that a database runs on.
type Database struct {
	Edition string // apache or community
	Version string
}
