package airquality

import (
	"fmt"
	"time"

	"roomsensor/internal/roomsensor"
)

// MaxSelectedNights is how many nights a client may select at once (A17.1).
const MaxSelectedNights = 92

// NightSelection selects the assignments of a team in some nights (A17.1).
type NightSelection struct {
	From, To    time.Time // dates of the first and the last night, at midnight UTC
	Hours       NightHours
	Zone        *time.Location
	Limits      *TeamLimits
	Now         time.Time
	ExternalRef *string           // that an assignment must have exactly; nil selects all
	Metadata    map[string]string // tags that its device must have
}

// Nights returns the nights that have begun and are not empty, the newest first, each with its query.
func (s *NightSelection) Nights() (nights []Night, queries []NightQuery) {
	for date := s.To; !date.Before(s.From); date = date.AddDate(0, 0, -1) {
		night := s.Hours.Night(date, s.Zone)
		if night.Window.From.After(s.Now) || night.Window.Empty() {
			continue
		}
		nights = append(nights, night)
		queries = append(queries, NightQuery{
			Window: night.Window, Limits: s.Limits, Now: s.Now, ExternalRef: s.ExternalRef, Metadata: s.Metadata,
		})
	}
	return nights, queries
}

// TooManyRooms is the error of a selection in which more assignments overlap one night than are read at once.
func TooManyRooms(most int) *roomsensor.Error {
	return roomsensor.Invalid("", fmt.Sprintf("More than %d assignments overlap one night. Select some of them with "+
		"external_ref, or those of some devices with metadata.<key>.", most))
}

// ResolveNights returns the dates of the first and the last night that the parameters night, from_night and to_night
// mean, of which last is the default; nil means that a parameter was not sent. Its errors name the parameter.
func ResolveNights(night, from, to *time.Time, last Night) (first, newest time.Time, err error) {
	switch {
	case night != nil && (from != nil || to != nil):
		return first, newest, roomsensor.Invalid("night", "Send night alone, or from_night and to_night.")
	case night != nil:
		return *night, *night, nil
	case from == nil && to != nil:
		return first, newest, roomsensor.Invalid("to_night", "Send from_night with to_night, or night alone.")
	case from == nil:
		return last.Date, last.Date, nil
	case to == nil && from.After(last.Date):
		return first, newest, roomsensor.NewError(roomsensor.CodeTimeRangeInvalid, "from_night",
			"from_night is after the last night, which began on "+last.Date.Format(time.DateOnly)+", and to_night is missing.")
	case to == nil:
		to = &last.Date
	}
	switch {
	case to.Before(*from):
		return first, newest, roomsensor.NewError(roomsensor.CodeTimeRangeInvalid, "to_night",
			"to_night must not be before from_night.")
	case to.After(from.AddDate(0, 0, MaxSelectedNights-1)):
		return first, newest, roomsensor.NewError(roomsensor.CodeTimeRangeTooWide, "from_night",
			"There are more than 92 nights. Ask for from_night="+from.Format(time.DateOnly)+"&to_night="+
				from.AddDate(0, 0, MaxSelectedNights-1).Format(time.DateOnly)+" first, and for the rest in further requests.")
	}
	return *from, *to, nil
}
