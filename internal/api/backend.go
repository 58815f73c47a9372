package api

import (
	"context"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/api/feed"
	"roomsensor/internal/export"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/roomsensor/accounts"
	"roomsensor/internal/roomsensor/aggregate"
	"roomsensor/internal/roomsensor/completeness"
)

// Backend has all stored data that the API needs. Its methods return roomsensor.ErrNotFound for what does not exist or
// belongs to another team, and a *roomsensor.Error with the code overloaded if the database is unavailable or too busy.
type Backend interface {
	export.Backend
	Keys
	Limiter
	Teams
	Devices
	Assignments
	Readings
	Coverage
	Aggregates
	Feed
}

// Keys finds API keys by their public ids. Unknown ids are left out.
type Keys interface {
	APIKeysByID(ctx context.Context, keyIDs []string) ([]roomsensor.Key, error)
}

// Limiter counts a request of a key or denies it (decision 25).
type Limiter interface {
	CountRequest(ctx context.Context, keyID string) (roomsensor.RateVerdict, error)
}

// Teams finds a team, and what its people configure.
type Teams interface {
	Team(ctx context.Context, teamID uuid.UUID) (roomsensor.Team, error)
	TeamSettings(ctx context.Context, teamID uuid.UUID) (accounts.TeamSettings, error)
}

// Devices reads and changes the devices of a team.
type Devices interface {
	EachDevice(
		ctx context.Context, teamID uuid.UUID, q roomsensor.DeviceQuery, do func(*roomsensor.Device),
	) error
	CurrentDevices(
		ctx context.Context, teamID uuid.UUID, q roomsensor.DeviceQuery, hours roomsensor.Window,
	) ([]roomsensor.CurrentDevice, error)
	// CurrentTeam is CurrentDevices for all devices of a team and the hours of last_24h at now, or nil if there are more
	// devices or tags than q allows. It contains everything that was committed before the call. If it fails, the next call
	// may continue where it stopped.
	CurrentTeam(
		ctx context.Context, teamID uuid.UUID, q roomsensor.DeviceQuery, now time.Time,
	) ([]roomsensor.CurrentDevice, error)
	Device(ctx context.Context, teamID, deviceID uuid.UUID) (roomsensor.Device, error)

	roomsensor.DeviceUpdater

	// Idempotently runs a change once for a key (idempotency rules, decision 23). It calls run with a transaction,
	// stores the response that run returns under the key in the same transaction, and commits; an error of run rolls
	// back and is returned. For a key that was used before it returns the stored response with replayed set, or
	// roomsensor.ErrBodyDiffers if the body was another one.
	Idempotently(
		ctx context.Context, key roomsensor.IdempotencyKey,
		run func(ctx context.Context, tx roomsensor.DeviceUpdater) ([]byte, error),
	) (response []byte, replayed bool, err error)
}

// Assignments reads the assignments of a device, or of a team.
type Assignments interface {
	Assignments(
		ctx context.Context, teamID, deviceID uuid.UUID, q roomsensor.AssignmentQuery,
	) ([]roomsensor.Assignment, error)
	TeamAssignments(
		ctx context.Context, teamID uuid.UUID, q roomsensor.TeamAssignmentQuery,
	) ([]roomsensor.DeviceAssignment, error)
}

// Readings calls a function with each reading of a page of a device's readings.
type Readings interface {
	EachReading(ctx context.Context, teamID, deviceID uuid.UUID, q roomsensor.ReadingQuery,
		do func(*roomsensor.Reading)) error
}

// Coverage reads which of the expected readings of a team's devices are there (A3, A4). Both methods call a function
// for each item of a page until it returns false.
type Coverage interface {
	// EachCoverage reports whether there are devices after the page, which may have fewer than the limit.
	EachCoverage(
		ctx context.Context, teamID uuid.UUID, q completeness.CoverageQuery, do func(*completeness.DeviceCoverage) bool,
	) (more bool, err error)
	// EachGap returns where the page ended if it had to end early.
	EachGap(
		ctx context.Context, teamID, deviceID uuid.UUID, q completeness.GapQuery, do func(*roomsensor.Window) bool,
	) (rest *time.Time, err error)
}

// Feed reads the change feed.
type Feed interface {
	feed.Backend

	// EachChange calls a function with readings of a round until it returns false, and returns how far the round was
	// read.
	EachChange(ctx context.Context, teamID uuid.UUID, q roomsensor.FeedQuery,
		do func(*roomsensor.Change) bool) (roomsensor.FeedProgress, error)
}

// Aggregates aggregates the readings of a team's devices (A1).
type Aggregates interface {
	// DeviceAggregates returns the aggregates of the buckets of q, the newest first. It may leave out some at the end, but
	// not the first one.
	DeviceAggregates(
		ctx context.Context, teamID, deviceID uuid.UUID, q aggregate.Query,
	) ([]aggregate.Aggregate, error)
}
