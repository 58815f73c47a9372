package csvimport

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"roomsensor/internal/roomsensor"
)

// Summary is what files contain. The zero Summary is empty.
type Summary struct {
	Readings, WithoutValues, BadLines int
	units                             map[string]*Unit
}

// Unit is what files contain of one unit.
type Unit struct {
	HardwareID string    `json:"hardware_id"`
	Readings   int       `json:"readings"`
	From       time.Time `json:"from"` // first measurement
	To         time.Time `json:"to"`   // last measurement
}

// Add counts a line.
func (s *Summary) Add(l *Line) error {
	switch {
	case l.Problem != "":
		s.BadLines++
		return nil
	case l.IsEmpty():
		s.WithoutValues++
		return nil
	}
	u, known := s.units[l.HardwareID]
	if !known {
		if len(s.units) == MaxUnits {
			return fmt.Errorf("the files have more than %d units", MaxUnits)
		}
		if s.units == nil {
			s.units = map[string]*Unit{}
		}
		u = &Unit{HardwareID: strings.Clone(l.HardwareID), From: l.MeasuredAt, To: l.MeasuredAt}
		s.units[u.HardwareID] = u
	}
	s.Readings++
	u.Readings++
	u.From, u.To = roomsensor.Earlier(u.From, l.MeasuredAt), roomsensor.Later(u.To, l.MeasuredAt)
	return nil
}

// Units returns the units, sorted by hardware id.
func (s *Summary) Units() []Unit {
	units := make([]Unit, 0, len(s.units))
	for u := range maps.Values(s.units) {
		units = append(units, *u)
	}
	slices.SortFunc(units, func(a, b Unit) int { return cmp.Compare(a.HardwareID, b.HardwareID) })
	return units
}

// AppendTrial appends an upload with the first and the last time of the unit, on a line, without values. A dry run of
// it says whether the unit is known, and installed at these times.
func (u *Unit) AppendTrial(dst []byte) []byte {
	dst = append(dst, `{"hardware_id":"`+u.HardwareID+`","readings":[`...)
	for i, at := range []time.Time{u.From, u.To} {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(roomsensor.AppendTime(append(dst, `{"measured_at":"`...), at), `","co2_ppm":null}`...)
	}
	return append(dst, "]}\n"...)
}
