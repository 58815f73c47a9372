package api

import (
	"bytes"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/roomsensor"
)

// snapshot is what /devices/current knows of a team at an instant. Its parts
// are never changed, so that any number of requests may read them.
type snapshot struct {
	readAt   time.Time // before the read began: all that was committed by then is in it
	hours    roomsensor.Window
	devices  []roomsensor.CurrentDevice // every device of the team, by id
	partial  bool                       // the team is too large: devices is empty and says nothing
	closed   map[uuid.UUID]roomsensor.Stats
	closedAt time.Time

	mu    sync.Mutex
	whole *document
	until time.Time // when a status in whole changes
}

// document returns the page of all devices as of now. It is made anew only
// where a status changed meanwhile.
func (s *snapshot) document(now time.Time) *document {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.whole != nil && now.Before(s.until) {
		return s.whole
	}
	s.until = roomsensor.Forever
	for i := range s.devices {
		if change := roomsensor.StatusUntil(now, s.devices[i].LastSeenAt); change.Before(s.until) {
			s.until = change
		}
	}
	body := beginList(nil)
	for i := range s.devices {
		body = appendCurrent(element(body), &s.devices[i], now, s.hours.From)
	}
	s.whole = newDocument(endList(body, nil))
	return s.whole
}

// page selects devices as the store does.
func (s *snapshot) page(q roomsensor.DeviceQuery) []roomsensor.CurrentDevice {
	rest := s.devices
	if q.After != nil {
		at, found := slices.BinarySearchFunc(rest, *q.After, func(d roomsensor.CurrentDevice, id uuid.UUID) int {
			return bytes.Compare(d.ID[:], id[:])
		})
		if found {
			at++
		}
		rest = rest[at:]
	}
	page := []roomsensor.CurrentDevice{}
	for i := range rest {
		if len(page) == q.Limit {
			break
		}
		if hasTags(rest[i].Metadata, q.Metadata) {
			page = append(page, rest[i])
		}
	}
	return page
}

// hasTags compares exactly (decision 18).
func hasTags(tags, wanted map[string]string) bool {
	for key, value := range wanted {
		if got, ok := tags[key]; !ok || got != value {
			return false
		}
	}
	return true
}
