package api

import (
	"context"

	"github.com/google/uuid"

	"roomsensor/internal/roomsensor"
)

// Backend is all that the API needs of what is stored. What is not there, or
// is not the team's, is roomsensor.ErrNotFound; a database that is away or too
// busy is a *roomsensor.Error of the code overloaded.
type Backend interface {
	Keys
	Limiter
	Teams
	Devices
	Assignments
	Readings
	Exporter
}

// Keys finds an API key by its public identifier.
type Keys interface {
	APIKey(ctx context.Context, keyID string) (roomsensor.Key, error)
}

// Limiter counts a request of a key, or denies it (decision 25).
type Limiter interface {
	CountRequest(ctx context.Context, keyID string) (roomsensor.RateVerdict, error)
}

// Teams finds a team.
type Teams interface {
	Team(ctx context.Context, teamID uuid.UUID) (roomsensor.Team, error)
}

// Devices reads and changes the devices of a team.
type Devices interface {
	Devices(ctx context.Context, teamID uuid.UUID, q roomsensor.DeviceQuery) ([]roomsensor.Device, error)
	CurrentDevices(
		ctx context.Context, teamID uuid.UUID, q roomsensor.DeviceQuery, hours roomsensor.Window,
	) ([]roomsensor.CurrentDevice, error)
	HourStats(
		ctx context.Context, teamID uuid.UUID, deviceIDs []uuid.UUID, hours roomsensor.Window,
	) (map[uuid.UUID]roomsensor.Stats, error)
	Device(ctx context.Context, teamID, deviceID uuid.UUID) (roomsensor.Device, error)
	DeviceNames(ctx context.Context, teamID uuid.UUID) ([]roomsensor.NamedDevice, error)

	// UpdateDevice applies a patch and returns the body that render made of the
	// device, in one transaction with the body's entry under once, if there is
	// one; or, for a request that ran before, the body of then. The error is
	// roomsensor.ErrBodyDiffers for a once that came with another body.
	UpdateDevice(ctx context.Context, teamID, deviceID uuid.UUID, patch roomsensor.DevicePatch,
		once *roomsensor.Once, render func(roomsensor.Device) []byte) (body []byte, replayed bool, err error)
}

// Assignments reads the assignments of a team's devices.
type Assignments interface {
	Assignments(
		ctx context.Context, teamID, deviceID uuid.UUID, q roomsensor.AssignmentQuery,
	) ([]roomsensor.Assignment, error)
	Assignment(ctx context.Context, teamID, assignmentID uuid.UUID) (roomsensor.Assignment, error)
}

// Readings reads a page of a device's readings, one after the other.
type Readings interface {
	EachReading(ctx context.Context, teamID, deviceID uuid.UUID, q roomsensor.ReadingQuery,
		do func(*roomsensor.Reading)) error
}

// Exporter opens an export of a team's readings. A query that selects too many
// is a *roomsensor.TooManyRowsError.
type Exporter interface {
	OpenExport(ctx context.Context, teamID uuid.UUID, q roomsensor.ExportQuery) (Export, error)
}

// Export is one snapshot of the readings that a query selects. It must be
// closed.
type Export interface {
	// Rows is the number of readings.
	Rows() int
	// Lines is the number of distinct buckets among them, where the query asks
	// for it.
	Lines() int
	// Each hands every reading to f, by bucket, then by device, and stops at
	// the first error of f.
	Each(ctx context.Context, f func(*roomsensor.ExportRow) error) error
	Close()
}
