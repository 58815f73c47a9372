package roomsensor

import (
	"time"

	"github.com/google/uuid"
)

// Team owns devices and keys (spec 2, Team). Nothing of one team is visible to another.
type Team struct {
	ID   uuid.UUID
	Name string
}

// TeamSettings are a team and what people set for it.
type TeamSettings struct {
	ID       uuid.UUID
	Name     string
	TimeZone *time.Location // never nil
	Night    NightHours
	Limits   TeamLimits
	Alerts   AlertSettings
}

// IsNight reports whether a time is in a night of the team. It takes as long as the judgment of many rooms.
func (t *TeamSettings) IsNight(at time.Time) bool { return t.Night.Contains(at, t.TimeZone) }
