package accounts

import (
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/roomsensor/airquality"
	"roomsensor/internal/roomsensor/alerting"
)

// TeamSettings are a team and what people set for it.
type TeamSettings struct {
	ID       uuid.UUID
	Name     string
	TimeZone *time.Location // never nil
	Night    airquality.NightHours
	Limits   airquality.TeamLimits
	Alerts   alerting.Settings
	KeepDays *int32 // the retention of the readings of its devices; nil: none
}

// IsNight reports whether a time is in a night of the team. It takes as long as the judgment of many rooms.
func (t *TeamSettings) IsNight(at time.Time) bool { return t.Night.Contains(at, t.TimeZone) }
