package csvenc

import (
	"strings"

	"github.com/google/uuid"

	"roomsensor/internal/roomsensor"
)

// shortID is the length of the part of an id that tells equal names apart.
const shortID = 8

// Names gives every device of a team its part of a wide column's name
// (decision 29). Every member of a collision is named more exactly, until
// there is none: by the slug, then with the first digits of the id, then with
// the whole id, whose hyphens no slug contains.
func Names(team []roomsensor.NamedDevice) map[uuid.UUID]string {
	names := make(map[uuid.UUID]string, len(team))
	exactness := make([]int, len(team))
	for {
		members := make(map[string][]int, len(team))
		for i, d := range team {
			names[d.ID] = nameOf(d, exactness[i])
			members[names[d.ID]] = append(members[names[d.ID]], i)
		}
		if len(members) == len(names) {
			return names
		}
		for _, same := range members {
			if len(same) < 2 {
				continue
			}
			for _, i := range same {
				exactness[i]++
			}
		}
	}
}

func nameOf(d roomsensor.NamedDevice, exactness int) string {
	id, name := d.ID.String(), ""
	if d.DisplayName != nil {
		name = Slug(*d.DisplayName)
	}
	if name == "" {
		name = "device_" + id[:shortID]
	}
	switch exactness {
	case 0:
		return name
	case 1:
		return name + "_" + id[:shortID]
	}
	return name + "_" + id
}

// Slug is a name in lower case, every run of characters other than a-z and
// 0-9 as one underscore, none at either end.
func Slug(name string) string {
	var b strings.Builder
	gap := false
	for _, r := range strings.ToLower(name) {
		if ('a' > r || r > 'z') && ('0' > r || r > '9') {
			gap = true
			continue
		}
		if gap && b.Len() > 0 {
			b.WriteByte('_')
		}
		gap = false
		b.WriteRune(r)
	}
	return b.String()
}
