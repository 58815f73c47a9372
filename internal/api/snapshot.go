package api

import (
	"bytes"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/api/render"
	"roomsensor/internal/httpedge"
	"roomsensor/internal/roomsensor"
)

// snapshot has the data of /devices/current for one team at one time. The fields above mu never change, so that any
// number of requests may read them.
type snapshot struct {
	readAt  time.Time // when the read began: the snapshot contains everything committed before
	hours   roomsensor.Window
	devices []roomsensor.CurrentDevice // all devices of the team, by id
	bytes   int                        // the memory that it takes, about
	partial bool                       // the team is too large for a snapshot; devices is empty

	mu       sync.Mutex
	whole    *document // the page of all devices
	tooLarge bool      // the devices need several pages
	until    time.Time // when the first status in whole changes
}

func (s *snapshot) countBytes() {
	s.bytes = 0
	for i := range s.devices {
		s.bytes += snapshotDeviceBytes + snapshotTagFactor*s.devices[i].TagBytes()
	}
}

// currentBytes is what a device takes in the body, if it has a name and a few tags.
const currentBytes = 1 << 10

// document returns the page of all devices at now, or nil if it has too many bytes for one page. It renders the page
// again only after a status changed.
func (s *snapshot) document(now time.Time) *document {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tooLarge || s.whole != nil && now.Before(s.until) {
		return s.whole
	}
	s.until = roomsensor.Forever
	for i := range s.devices {
		if change := roomsensor.StatusUntil(now, s.devices[i].LastSeenAt); change.Before(s.until) {
			s.until = change
		}
	}
	body := httpedge.BeginList(make([]byte, 0, min(len(s.devices)*currentBytes, roomsensor.MaxPageBytes)))
	for i := range s.devices {
		body = render.Current(render.Element(body), &s.devices[i], now, s.hours.From)
		if len(body) > roomsensor.MaxPageBytes-len(`],"next_cursor":null}`) {
			s.whole, s.tooLarge = nil, true
			return nil
		}
	}
	s.whole = newDocument(httpedge.EndList(body, nil))
	return s.whole
}

// page selects devices like the store.
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

// hasTags reports whether the tags include the wanted ones; it compares exactly (decision 18).
func hasTags(tags, wanted map[string]string) bool {
	for key, value := range wanted {
		if got, ok := tags[key]; !ok || got != value {
			return false
		}
	}
	return true
}
