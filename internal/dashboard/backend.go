package dashboard

import (
	"context"

	"github.com/google/uuid"

	"roomsensor/internal/export"
	"roomsensor/internal/roomsensor"
)

// Backend has all stored data that the pages need. Its methods return roomsensor.ErrNotFound for what does not exist or
// belongs to another team, and a *roomsensor.Error with the code overloaded if the database is unavailable or too busy.
type Backend interface { //nolint:interfacebloat // It is the sum of those of the pages.
	People
	SignIn
	Overview
	Links
	Account
	Members
	Settings
	Nights
	export.Backend
	Assignments
	Audit
	Keys
	Rejects
	Units
	DevicePage
	DeviceChanges
}

// People finds people and what they may do. Every request needs it.
type People interface {
	User(ctx context.Context, userID uuid.UUID) (roomsensor.User, error)
	Membership(ctx context.Context, teamID, userID uuid.UUID) (roomsensor.Membership, error)
	Memberships(ctx context.Context, userID uuid.UUID) ([]roomsensor.Membership, error)
}
