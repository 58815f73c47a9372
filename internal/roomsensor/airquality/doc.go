// Package airquality judges the air of rooms by the limits of their team, now and over nights. It does no I/O.
//
//	air.go                 limits, and the verdict on the values of a room
//	night.go               the hours of nights
//	night_result.go        what was measured in a night of a room, and the verdict on it
//	night_selection.go     the nights that a client of the API selects
//	night_history.go       the nights of a person or a place
//	night_change.go        nights that a change of assignments moves to somebody else
//	assignment_preview.go  what a person sees before a change of assignments is saved
package airquality
