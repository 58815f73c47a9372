package accounts

import (
	"crypto/rand"
	"crypto/sha256"
	"net/netip"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/roomsensor"
)

// User is a person who signs in to the dashboard.
type User struct {
	ID          uuid.UUID
	Email       string
	Name        string // empty until the person enters it
	HasPassword bool
	CreatedAt   time.Time
	DisabledAt  *time.Time
	SignedOutAt *time.Time // when all sessions ended last
	Format      roomsensor.FormatChoice
}

// DisplayName returns the name of a person, or the email address of one without a name.
func (u *User) DisplayName() string {
	if u.Name == "" {
		return u.Email
	}
	return u.Name
}

// Credentials are a person and what is stored of the password.
type Credentials struct {
	User         User
	PasswordHash string
}

// Membership is the role of a person in a team.
type Membership struct {
	Team TeamSettings
	Role roomsensor.Role
}

// Member is a person of a team.
type Member struct {
	User       User
	Role       roomsensor.Role
	Since      time.Time
	OtherTeams int // of which the person is a member, too
}

// UserTeams is a person with all teams.
type UserTeams struct {
	User  User
	Teams []Membership
}

// The limits of people.
const (
	// LinkLifetime is the lifetime of a link with which a person sets a password.
	LinkLifetime = 72 * time.Hour
	// MaxMembers is how many members and open invitations a team may have.
	MaxMembers = 500
)

// LinkPurpose is what a link of a person is for.
type LinkPurpose string

// The purposes of links.
const (
	LinkInvitation LinkPurpose = "invitation" // to join a team
	LinkReset      LinkPurpose = "reset"      // to set another password
)

// SignInLink is a link that can be used.
type SignInLink struct {
	Purpose   LinkPurpose
	User      User
	Team      roomsensor.Team // zero for a reset of an operator
	Role      roomsensor.Role // in the team; NoRole for a reset
	ExpiresAt time.Time
}

// TeamLink is a link of a team that can be used.
type TeamLink struct {
	User      User // ID and Email only
	Purpose   LinkPurpose
	Role      roomsensor.Role // NoRole for a reset
	MadeBy    string          // address of the admin; empty for an operator
	ExpiresAt time.Time
}

// NewLink is a link to be stored.
type NewLink struct {
	TokenSHA256 [sha256.Size]byte
	ExpiresAt   time.Time
}

// GenerateLink creates a link with a lifetime. The token is shown once and never stored.
func GenerateLink(now time.Time, lifetime time.Duration) (token string, link NewLink) {
	token = rand.Text()
	return token, NewLink{TokenSHA256: sha256.Sum256([]byte(token)), ExpiresAt: now.Add(lifetime)}
}

// LinkPath returns the path of the page of the dashboard for a token.
func LinkPath(token string) string { return "/invitation/" + token }

// MemberConflict is why a change of the members of a team contradicts what is stored.
type MemberConflict string

// The conflicts.
const (
	ConflictMember     MemberConflict = "the person is a member already"
	ConflictDisabled   MemberConflict = "the account is disabled"
	ConflictFull       MemberConflict = "the team has too many members"
	ConflictLastAdmin  MemberConflict = "the team has no other admin"
	ConflictOtherTeams MemberConflict = "the person belongs to other teams"
)

// MemberConflictError is a refused change of the members of a team.
type MemberConflictError struct{ Conflict MemberConflict }

func (e *MemberConflictError) Error() string { return string(e.Conflict) }

// The limits of attempts to sign in, each within 15 minutes. The first stops guesses from one address, and locks
// nobody else out. The third stops guesses from many addresses, and does not apply to an address from which the person
// signed in before: an attacker cannot lock a person out there.
const (
	MaxPairAttempts   = 10  // for an account from an address
	MaxSourceAttempts = 100 // from an address
	MaxUserAttempts   = 50  // for an account from addresses that are new to it

	// MaxNetworkAttempts is for a network. It bounds the rows of attempts that somebody with a network can make.
	MaxNetworkAttempts = 1000
)

// SignInAttempt is an attempt to sign in. An unknown account is counted like any other.
type SignInAttempt struct {
	Email   string
	Address netip.Addr
}

// Source returns the address as it is counted: of IPv6, the network of 64 bits that one client usually has.
func (a SignInAttempt) Source() string { return networkOf(a.Address, 64, 0) }

// Network returns the network of an address that one customer usually has: of 48 bits for IPv6, of 24 for IPv4.
func Network(address netip.Addr) string { return networkOf(address, 48, 24) }

// networkOf returns the network of an address with some bits for IPv6 and for IPv4; 0 means the address itself.
func networkOf(address netip.Addr, bits6, bits4 int) string {
	address = address.Unmap().WithZone("")
	bits := bits6
	if address.Is4() {
		bits = bits4
	}
	prefix, err := address.Prefix(bits)
	if err != nil || bits == 0 || !prefix.IsValid() {
		return address.String()
	}
	return prefix.String()
}
