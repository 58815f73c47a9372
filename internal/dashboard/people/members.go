package people

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"roomsensor/internal/dashboard/page"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/roomsensor/accounts"
)

// Members reads and changes the members of a team. The error of a change that contradicts what is stored is a
// *accounts.MemberConflictError.
type Members interface {
	Members(ctx context.Context, teamID uuid.UUID) ([]accounts.Member, error)
	Links(ctx context.Context, teamID uuid.UUID) ([]accounts.TeamLink, error)
	Invite(ctx context.Context, teamID uuid.UUID, email string, role roomsensor.Role, link accounts.NewLink) (
		accounts.User, error)
	RevokeLinks(ctx context.Context, teamID, userID uuid.UUID) error
	SetRole(ctx context.Context, teamID, userID uuid.UUID, role roomsensor.Role) error
	RemoveMember(ctx context.Context, teamID, userID uuid.UUID) error
	ResetMember(ctx context.Context, teamID, userID uuid.UUID, link accounts.NewLink) error
}

// membersView is the data of the page with the members of a team.
type membersView struct {
	Members []accounts.Member
	Links   []accounts.TeamLink
	Roles   []roomsensor.Role
	Self    uuid.UUID
	Email   string
	Role    roomsensor.Role
	Link    string // of an invitation or a reset that was just made; shown once
	LinkFor string
	Errors  page.FormErrors
}

// ShowMembers shows the members of a team and its invitations.
func (p *Pages) ShowMembers(ctx context.Context, v *page.Visit) error {
	return p.answerMembers(ctx, v, nil, func(*membersView) {})
}

// InviteMember invites a person, and shows the link.
func (p *Pages) InviteMember(ctx context.Context, v *page.Visit) error {
	email, problems := v.Form("email"), page.FormErrors{}
	role, ok := roomsensor.ParseRole(v.Form("role"))
	if !ok {
		problems.Add("role", "Choose a role.")
	}
	problems.AddCheck("email", "The email address", roomsensor.CheckEmail(email))
	token, link := accounts.GenerateLink(v.Now, accounts.LinkLifetime)
	if len(problems) == 0 {
		_, err := p.backend.Invite(ctx, v.Team.ID, email, role, link)
		if err = addConflict(problems, "email", err); err != nil {
			return err
		}
	}
	return p.answerMembers(ctx, v, problems, func(view *membersView) {
		if len(problems) > 0 {
			view.Email, view.Role = email, role
			return
		}
		view.Link, view.LinkFor = p.url+accounts.LinkPath(token), email
	})
}

// ResetMember shows a link with which a member sets another password.
func (p *Pages) ResetMember(ctx context.Context, v *page.Visit) error {
	userID, err := v.ID("user_id")
	if err != nil {
		return err
	}
	problems := page.FormErrors{}
	token, link := accounts.GenerateLink(v.Now, accounts.LinkLifetime)
	err = p.backend.ResetMember(ctx, v.Team.ID, userID, link)
	if err = addConflict(problems, "member", err); err != nil {
		return err
	}
	return p.answerMembers(ctx, v, problems, func(view *membersView) {
		if len(problems) > 0 {
			return
		}
		view.Link = p.url + accounts.LinkPath(token)
		for _, m := range view.Members {
			if m.User.ID == userID {
				view.LinkFor = m.User.Email
			}
		}
	})
}

// ChangeRole changes the role of a member.
func (p *Pages) ChangeRole(ctx context.Context, v *page.Visit) error {
	role, ok := roomsensor.ParseRole(v.Form("role"))
	if !ok {
		return page.ErrMalformed
	}
	return p.changeMember(ctx, v, "The role is changed.", func(userID uuid.UUID) error {
		return p.backend.SetRole(ctx, v.Team.ID, userID, role)
	})
}

// RemoveMember ends a membership.
func (p *Pages) RemoveMember(ctx context.Context, v *page.Visit) error {
	return p.changeMember(ctx, v, "The person is not a member any more.", func(userID uuid.UUID) error {
		return p.backend.RemoveMember(ctx, v.Team.ID, userID)
	})
}

// RevokeLinks ends the links of a person.
func (p *Pages) RevokeLinks(ctx context.Context, v *page.Visit) error {
	return p.changeMember(ctx, v, "The link is revoked.", func(userID uuid.UUID) error {
		return p.backend.RevokeLinks(ctx, v.Team.ID, userID)
	})
}

// changeMember runs a change of the person in the path.
func (p *Pages) changeMember(ctx context.Context, v *page.Visit, done string, change func(uuid.UUID) error) error {
	userID, err := v.ID("user_id")
	if err != nil {
		return err
	}
	problems := page.FormErrors{}
	if err := addConflict(problems, "member", change(userID)); err != nil {
		return err
	}
	if len(problems) > 0 {
		return p.answerMembers(ctx, v, problems, func(*membersView) {})
	}
	next := v.Path("members")
	if m, err := p.backend.Membership(ctx, v.Team.ID, v.User.ID); err != nil || m.Role < roomsensor.Admin {
		next = "/" // The person changed the own role, and may no longer see the page.
	}
	return v.Redirect(next, done)
}

// answerMembers shows the page, with what fill adds and with the errors of a form.
func (p *Pages) answerMembers(
	ctx context.Context, v *page.Visit, problems page.FormErrors, fill func(*membersView),
) error {
	members, err := p.backend.Members(ctx, v.Team.ID)
	if err != nil {
		return err
	}
	links, err := p.backend.Links(ctx, v.Team.ID)
	if err != nil {
		return err
	}
	view := &membersView{
		Members: members, Links: links, Roles: roomsensor.Roles, Self: v.User.ID, Role: roomsensor.Viewer, Errors: problems,
	}
	fill(view)
	if len(problems) > 0 {
		return v.Invalid("members", view)
	}
	return v.Render("members", view)
}

// memberConflicts are the sentences about refused changes of members.
var memberConflicts = map[accounts.MemberConflict]string{
	accounts.ConflictMember:    "This person is a member already. Change the role in the list.",
	accounts.ConflictDisabled:  "This account is disabled. Ask the operator of the service to enable it.",
	accounts.ConflictFull:      "The team has as many members and invitations as it may have. Remove one first.",
	accounts.ConflictLastAdmin: "This person is the only admin. Make another member an admin first.",
	accounts.ConflictOtherTeams: "This person belongs to other teams too. Only the operator of the service can make a " +
		"link for a new password.",
}

// addConflict adds a refused change to the errors of a field, and returns any other error.
func addConflict(problems page.FormErrors, field string, err error) error {
	conflict, ok := errors.AsType[*accounts.MemberConflictError](err)
	if !ok {
		return err
	}
	problems.Add(field, memberConflicts[conflict.Conflict])
	return nil
}
