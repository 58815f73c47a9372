package accounts

import (
	"fmt"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/roomsensor"
)

// The limits of shared links.
const (
	// MaxShares is how many links of a team can be used at the same time.
	MaxShares = 100
	// MaxSharedDevices is how many devices a link shows.
	MaxSharedDevices = 30
)

// Shared is what a link shows to anybody who has it. One of its members is set.
type Shared struct {
	Night        *time.Time  // the date on which the night begins, in UTC
	AssignmentID *uuid.UUID  // of the person whose newest nights it shows
	DeviceIDs    []uuid.UUID // the devices that it shows as they are now
}

// SharedLink is a link that can be used.
type SharedLink struct {
	Shared

	ID        uuid.UUID
	Team      TeamSettings // empty in a list
	Person    string       // the label of the assignment; only in a list
	MadeBy    string       // address of its maker; only in a list
	ExpiresAt time.Time
}

// SharedPath returns the path of the page of the dashboard for the token of a shared link.
func SharedPath(token string) string { return "/shared/" + token }

// TooManyShares returns the error of a team that has MaxShares.
func TooManyShares() *roomsensor.Error {
	return roomsensor.Invalid("share",
		fmt.Sprintf("The team has %d shared links, the most that it may have. Revoke one first.", MaxShares))
}
