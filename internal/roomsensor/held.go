package roomsensor

import (
	"time"

	"github.com/google/uuid"
)

// Held finds what belongs to the assignment that held a device at a time (A18.3). The times of a device must ascend.
type Held[T any] struct {
	left map[uuid.UUID][]heldPart[T] // those that have not ended, by start
}

type heldPart[T any] struct {
	window Window
	value  T
}

// NewHeld returns what of makes of each of some assignments, which are ordered by start.
func NewHeld[T any](assignments []Assignment, of func(*Assignment) T) *Held[T] {
	h := &Held[T]{map[uuid.UUID][]heldPart[T]{}}
	for i := range assignments {
		a := &assignments[i]
		h.left[a.DeviceID] = append(h.left[a.DeviceID], heldPart[T]{a.Window(), of(a)})
	}
	return h
}

// At returns the value of the assignment that held a device at a time; ok is false without one.
func (h *Held[T]) At(device uuid.UUID, at time.Time) (value T, ok bool) {
	left := h.left[device]
	for len(left) > 0 && !at.Before(left[0].window.To) {
		left = left[1:]
		h.left[device] = left
	}
	if len(left) > 0 && !at.Before(left[0].window.From) {
		return left[0].value, true
	}
	return value, false
}
