package roomsensor

import "github.com/google/uuid"

// Team owns devices and keys (spec 2, Team).
type Team struct {
	ID   uuid.UUID
	Name string
}
