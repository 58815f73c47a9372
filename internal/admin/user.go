package admin

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"roomsensor/internal/process"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/roomsensor/accounts"
)

// Link is a link for a person, which is shown only once.
type Link struct {
	UserID    string `json:"user_id"`
	Email     string `json:"email"`
	Link      string `json:"link"`
	ExpiresAt string `json:"expires_at"`
}

// User is a person who signs in to the dashboard.
type User struct {
	UserID     string       `json:"user_id"`
	Email      string       `json:"email"`
	Name       *string      `json:"name"`
	Teams      []Membership `json:"teams"`
	CreatedAt  string       `json:"created_at"`
	DisabledAt *string      `json:"disabled_at"`
}

// Membership is the role of a person in a team.
type Membership struct {
	TeamID string `json:"team_id"`
	Name   string `json:"name"`
	Role   string `json:"role"`
}

func viewUser(u *accounts.UserTeams) User {
	view := User{
		UserID: u.User.ID.String(), Email: u.User.Email, Teams: make([]Membership, len(u.Teams)),
		CreatedAt: roomsensor.FormatTime(u.User.CreatedAt), DisabledAt: formatTime(u.User.DisabledAt),
	}
	if u.User.Name != "" {
		view.Name = &u.User.Name
	}
	for i, m := range u.Teams {
		view.Teams[i] = Membership{m.Team.ID.String(), m.Team.Name, m.Role.String()}
	}
	return view
}

// InviteUser creates a link with which a person joins a team. base is the address of the dashboard.
func (o *Operator) InviteUser(
	ctx context.Context, teamID uuid.UUID, email string, role roomsensor.Role, base string,
) (Link, error) {
	token, link := accounts.GenerateLink(o.timestamp(), accounts.LinkLifetime)
	user, err := o.store.Invite(ctx, teamID, email, role, link)
	if err != nil {
		return Link{}, o.explainUser(ctx, email, err)
	}
	return viewLink(&user, base, token, link), nil
}

// ResetUser creates a link with which a person sets another password.
func (o *Operator) ResetUser(ctx context.Context, email, base string) (Link, error) {
	token, link := accounts.GenerateLink(o.timestamp(), accounts.LinkLifetime)
	user, err := o.store.UserByEmail(ctx, email)
	if err == nil {
		err = o.store.ResetPassword(ctx, user.ID, link)
	}
	if err != nil {
		return Link{}, o.explainUser(ctx, email, err)
	}
	return viewLink(&user, base, token, link), nil
}

func viewLink(u *accounts.User, base, token string, link accounts.NewLink) Link {
	return Link{
		UserID: u.ID.String(), Email: u.Email, Link: base + accounts.LinkPath(token),
		ExpiresAt: roomsensor.FormatTime(link.ExpiresAt),
	}
}

// Users lists all people, the oldest account first.
func (o *Operator) Users(ctx context.Context) (List[User], error) {
	users, err := o.store.Users(ctx)
	return listOf(users, viewUser), o.explain(ctx, err)
}

// DisableUser ends the sessions of a person and refuses further ones.
func (o *Operator) DisableUser(ctx context.Context, email string) (User, error) {
	return o.changeUser(ctx, email, o.store.DisableUser)
}

// EnableUser lets a disabled person sign in again.
func (o *Operator) EnableUser(ctx context.Context, email string) (User, error) {
	return o.changeUser(ctx, email, o.store.EnableUser)
}

// DeletedUser is a person that was deleted, and what became of the audit log.
type DeletedUser struct {
	UserID   string `json:"user_id"`
	AuditLog int64  `json:"audit_log"` // entries in which the address was replaced
}

// UserWithTeams returns a person with the teams.
func (o *Operator) UserWithTeams(ctx context.Context, email string) (User, error) {
	user, err := o.store.UserByEmail(ctx, email)
	if err != nil {
		return User{}, o.explainUser(ctx, email, err)
	}
	teams, err := o.store.Memberships(ctx, user.ID)
	return viewUser(&accounts.UserTeams{User: user, Teams: teams}), o.explain(ctx, err)
}

// DeleteUser deletes a person who signs in to the dashboard. The audit log keeps the address, unless eraseAuditLog is
// set: the id of the person remains then.
func (o *Operator) DeleteUser(ctx context.Context, email string, eraseAuditLog bool) (DeletedUser, error) {
	user, err := o.store.UserByEmail(ctx, email)
	if err != nil {
		return DeletedUser{}, o.explainUser(ctx, email, err)
	}
	name := ""
	if eraseAuditLog {
		name = roomsensor.ErasedName(user.ID)
	}
	entries, err := o.store.DeleteUser(ctx, user.ID, name)
	return DeletedUser{user.ID.String(), entries}, o.explainUser(ctx, email, err)
}

// changeUser changes the person with an email address and returns the result.
func (o *Operator) changeUser(
	ctx context.Context, email string, change func(context.Context, uuid.UUID) error,
) (User, error) {
	user, err := o.store.UserByEmail(ctx, email)
	if err == nil {
		err = change(ctx, user.ID)
	}
	if err != nil {
		return User{}, o.explainUser(ctx, email, err)
	}
	return o.UserWithTeams(ctx, email)
}

// explainUser is explain for a command about a person.
func (o *Operator) explainUser(ctx context.Context, email string, err error) error {
	conflict, ok := errors.AsType[*accounts.MemberConflictError](err)
	if !ok {
		return o.explain(ctx, err)
	}
	switch conflict.Conflict {
	case accounts.ConflictMember:
		return process.Refusef("%s is a member of the team already. To set another password: roomsensor user reset %s.",
			email, email)
	case accounts.ConflictDisabled:
		return process.Refusef("The account %s is disabled. Enable it first: roomsensor user enable %s.", email, email)
	case accounts.ConflictFull:
		return process.Refusef("The team has %d members and open invitations, which is the limit. "+
			"Remove one on the page Members of the dashboard.", accounts.MaxMembers)
	default:
		return err
	}
}
