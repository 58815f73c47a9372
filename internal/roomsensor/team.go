package roomsensor

import "github.com/google/uuid"

// Team owns devices and keys (spec 2, Team). Nothing of one team is visible to another.
type Team struct {
	ID   uuid.UUID
	Name string
}

// Role is what a person may do in a team. A greater role may do all that a smaller one may.
type Role uint8

// The roles. NoRole is that of someone who is not a member.
const (
	NoRole Role = iota
	Viewer      // sees
	Editor      // also changes names, tags, assignments and hardware units
	Admin       // also manages keys, members, settings and rejects
)

// Roles lists the roles of members, the smallest first.
var Roles = []Role{Viewer, Editor, Admin}

var roleNames = [...]string{NoRole: "", Viewer: "viewer", Editor: "editor", Admin: "admin"}

func (r Role) String() string { return roleNames[r] }

// ParseRole returns the role of members with a name.
func ParseRole(name string) (Role, bool) {
	for _, r := range Roles {
		if r.String() == name {
			return r, true
		}
	}
	return NoRole, false
}

// RoleNeeded returns the error of a person whose role in a team is too small.
func RoleNeeded(role Role) *Error {
	return NewError(CodeInsufficientScope, "",
		"This needs the role "+role.String()+" in the team. Ask an admin of the team.")
}
