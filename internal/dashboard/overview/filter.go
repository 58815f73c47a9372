package overview

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/roomsensor/accounts"
	"roomsensor/internal/roomsensor/airquality"
	"roomsensor/internal/wording"
)

// overviewFilter selects the tiles of a page. All of it is in the query of its address.
type overviewFilter struct {
	search  string // in lower case
	tag     string // KEY=VALUE
	show    string // key of a showOption
	groupBy string // key of a tag; empty for bedrooms and other rooms
	page    int    // from 0
}

// readFilter reads a filter. problem is a sentence about a value that is not valid, which is left out.
func readFilter(query url.Values) (f overviewFilter, problem string) {
	f.search, f.tag = strings.ToLower(strings.TrimSpace(query.Get("q"))), query.Get("tag")
	if utf8.RuneCountInString(f.search) > maxSearch {
		f.search, problem = "", "The search has more than 200 characters. Search for a part of the name."
	}
	f.show, f.groupBy = query.Get("show"), query.Get("group")
	if f.show != "" && !slices.ContainsFunc(showOptions, func(o showOption) bool { return o.Key == f.show }) {
		f.show, problem = "", "There is no such choice. Choose what to show from the list."
	}
	if text := query.Get("page"); text != "" {
		number, err := strconv.Atoi(text)
		if err != nil || number < 1 || number > maxTiles/pageTiles {
			return f, "There is no such page. Start with the first one."
		}
		f.page = number - 1
	}
	return f, problem
}

// showOption is a selection of rooms.
type showOption struct {
	Key, Text string
	has       func(*room) bool
}

func airIs(v airquality.Verdict) func(*room) bool {
	return func(r *room) bool { return r.air == v }
}

// showOptions are the selections of rooms, in the order in which people see them.
var showOptions = []showOption{
	{"attention", "Needs attention", func(r *room) bool { return r.group == attentionGroup }},
	{"bad", "Bad air", airIs(airquality.Bad)},
	{"stuffy", "Stuffy air", airIs(airquality.Stuffy)},
	{"good", "Good air", airIs(airquality.Good)},
	{"unknown", "Unknown air", airIs(airquality.Unknown)},
	{"silent", "Silent devices", func(r *room) bool { return r.status != roomsensor.Online }},
}

// matches reports whether a tile has what is searched for, and the tag.
func (f *overviewFilter) matches(t *tile) bool {
	if !strings.Contains(t.search, f.search) {
		return false
	}
	key, value, _ := strings.Cut(f.tag, "=")
	has, ok := t.Metadata[key]
	return f.tag == "" || ok && has == value
}

// The groups of rooms. Other groups are the values of a tag.
const (
	attentionGroup = "Needs attention"
	bedroomGroup   = "Bedrooms"
	roomGroup      = "Other rooms"
)

// room is a tile with what depends on the time and the settings of the team.
type room struct {
	*tile

	air   airquality.Verdict
	group string
}

// group returns the group of a tile that needs no attention.
func (t *tile) group() string {
	if a := t.ActiveAssignment; a != nil && a.Type == roomsensor.Athlete {
		return bedroomGroup
	}
	return roomGroup
}

// newRoom judges a tile.
func (f *overviewFilter) newRoom(t *tile, team *accounts.TeamSettings, now time.Time, night bool) room {
	air, _ := t.air(team, now, night)
	r := room{t, air.Verdict, t.group()}
	switch {
	case air.Verdict == airquality.Bad || t.problem(now) != nil:
		r.group = attentionGroup
	case f.groupBy != "":
		if r.group = t.Metadata[f.groupBy]; r.group == "" {
			r.group = "Without " + f.groupBy
		}
	}
	return r
}

// rank orders groups: what needs attention first, then bedrooms, and what has no tag last.
func (f *overviewFilter) rank(group string) int {
	switch group {
	case attentionGroup:
		return 0
	case bedroomGroup:
		return 1
	case "Without " + f.groupBy:
		return 3
	}
	return 2
}

// selection is what a filter selects from an overview.
type selection struct {
	rooms     []room                  // of the page, by group and name
	total     int                     // of all pages
	air       [airquality.Bad + 1]int // rooms by verdict; the selection of what to show does not apply
	attention int                     // rooms that need it, likewise
}

func (w *overview) choose(f *overviewFilter, team *accounts.TeamSettings, now time.Time) (s selection) {
	shown := func(*room) bool { return true }
	for _, o := range showOptions {
		if o.Key == f.show {
			shown = o.has
		}
	}
	night := team.IsNight(now)
	for _, t := range w.tiles {
		if !f.matches(t) {
			continue
		}
		r := f.newRoom(t, team, now, night)
		s.air[r.air]++
		if r.group == attentionGroup {
			s.attention++
		}
		if shown(&r) {
			s.rooms = append(s.rooms, r)
		}
	}
	slices.SortStableFunc(s.rooms, func(a, b room) int {
		return cmp.Or(cmp.Compare(f.rank(a.group), f.rank(b.group)), strings.Compare(a.group, b.group))
	})
	s.total = len(s.rooms)
	from := min(f.page*pageTiles, s.total)
	s.rooms = s.rooms[from:min(from+pageTiles, s.total)]
	return s
}

// headline answers whether the rooms are fine now.
func (s *selection) headline(devices int) string {
	switch {
	case devices == 0:
		return "Overview"
	case s.attention > 0:
		return wording.Plural(s.attention, "room needs", "rooms need") + " attention"
	}
	return "No room needs attention"
}

// summary says in words what is selected from a number of devices.
func (s *selection) summary(devices int) string {
	switch {
	case devices == 0:
		return "No devices"
	case s.total < devices:
		return strconv.Itoa(s.total) + " of " + wording.Plural(devices, "room")
	}
	var parts []string
	for _, v := range []airquality.Verdict{airquality.Bad, airquality.Stuffy, airquality.Good, airquality.Unknown} {
		if n := s.air[v]; n > 0 {
			parts = append(parts, strconv.Itoa(n)+" "+v.String())
		}
	}
	return "Air in " + wording.Plural(devices, "room") + ": " + strings.Join(parts, ", ")
}
