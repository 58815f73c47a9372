package roomsensor

import (
	"strings"
	"unicode"
)

// PersonKey identifies a person among the athletes of a team, over all rooms and times. One of the fields is set. Two
// keys are equal if they are the same person.
type PersonKey struct {
	ExternalRef string // external_ref of the assignments
	Label       string // label of the assignments without an external_ref, as FoldLabel returns it
}

// Person returns the person whom an assignment names: its external_ref, or else its label without regard to letter case
// and outer spaces. ok is false for a place.
func (a *Assignment) Person() (key PersonKey, ok bool) {
	switch {
	case a.Type != Athlete:
		return PersonKey{}, false
	case a.ExternalRef != nil && *a.ExternalRef != "":
		return PersonKey{ExternalRef: *a.ExternalRef}, true
	}
	return PersonKey{Label: FoldLabel(a.Label)}, true
}

// IsPerson reports whether an assignment names a person.
func (a *Assignment) IsPerson(key PersonKey) bool {
	found, ok := a.Person()
	return ok && found == key
}

// FoldLabel returns the same text for all labels that differ in letter case or in outer spaces only: each character is
// the first one of those that differ from it in letter case. Databases compare differently, by their locale.
func FoldLabel(label string) string {
	return strings.Map(func(r rune) rune {
		first := r
		for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
			first = min(first, other)
		}
		return first
	}, strings.TrimSpace(label))
}
