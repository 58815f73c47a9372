package dashboard

import (
	"context"
	"errors"

	"github.com/google/uuid"

	"roomsensor/internal/roomsensor"
)

// Members reads and changes the members of a team. The error of a change that contradicts what is stored is a
// *roomsensor.MemberConflictError.
type Members interface {
	Members(ctx context.Context, teamID uuid.UUID) ([]roomsensor.Member, error)
	Invitations(ctx context.Context, teamID uuid.UUID) ([]roomsensor.Invitation, error)
	Invite(ctx context.Context, teamID uuid.UUID, email string, role roomsensor.Role, link roomsensor.NewLink) (
		roomsensor.User, error)
	RevokeInvitation(ctx context.Context, teamID, userID uuid.UUID) error
	SetRole(ctx context.Context, teamID, userID uuid.UUID, role roomsensor.Role) error
	RemoveMember(ctx context.Context, teamID, userID uuid.UUID) error
	ResetMember(ctx context.Context, teamID, userID uuid.UUID, link roomsensor.NewLink) error
}

// membersView is the data of the page with the members of a team.
type membersView struct {
	Members     []roomsensor.Member
	Invitations []roomsensor.Invitation
	Roles       []roomsensor.Role
	Self        uuid.UUID
	Email       string
	Role        roomsensor.Role
	Link        string // of an invitation or a reset that was just made; shown once
	LinkFor     string
	Errors      formErrors
}

// members returns the data of the page.
func (s *server) members(ctx context.Context, v *visit) (*membersView, error) {
	members, err := s.backend.Members(ctx, v.team.ID)
	if err != nil {
		return nil, err
	}
	invitations, err := s.backend.Invitations(ctx, v.team.ID)
	return &membersView{
		Members: members, Invitations: invitations, Roles: roomsensor.Roles, Self: v.user.ID,
		Role: roomsensor.Viewer, Errors: formErrors{},
	}, err
}

func (s *server) showMembers(ctx context.Context, v *visit) error {
	view, err := s.members(ctx, v)
	if err != nil {
		return err
	}
	return v.render("members", view)
}

func (s *server) inviteMember(ctx context.Context, v *visit) error {
	if err := v.checkForm(); err != nil {
		return err
	}
	email, problems := v.form("email"), formErrors{}
	role, ok := roomsensor.ParseRole(v.form("role"))
	if !ok {
		problems.add("role", "Choose a role.")
	}
	problems.addCheck("email", "The email address", roomsensor.CheckEmail(email))
	token, link := roomsensor.GenerateLink(v.now)
	if len(problems) == 0 {
		_, err := s.backend.Invite(ctx, v.team.ID, email, role, link)
		if err = problems.addConflict("email", err); err != nil {
			return err
		}
	}
	return s.answerMembers(ctx, v, problems, func(view *membersView) {
		if len(problems) > 0 {
			view.Email, view.Role = email, role
			return
		}
		view.Link, view.LinkFor = s.url+roomsensor.LinkPath(token), email
	})
}

// resetMember shows a link with which a member sets another password.
func (s *server) resetMember(ctx context.Context, v *visit) error {
	userID, err := v.id("user_id")
	if err != nil {
		return err
	}
	problems := formErrors{}
	token, link := roomsensor.GenerateLink(v.now)
	err = s.backend.ResetMember(ctx, v.team.ID, userID, link)
	if err = problems.addConflict("member", err); err != nil {
		return err
	}
	return s.answerMembers(ctx, v, problems, func(view *membersView) {
		if len(problems) > 0 {
			return
		}
		view.Link = s.url + roomsensor.LinkPath(token)
		for _, m := range view.Members {
			if m.User.ID == userID {
				view.LinkFor = m.User.Email
			}
		}
	})
}

func (s *server) changeRole(ctx context.Context, v *visit) error {
	if err := v.checkForm(); err != nil {
		return err
	}
	role, ok := roomsensor.ParseRole(v.form("role"))
	if !ok {
		return errMalformed
	}
	return s.changeMember(ctx, v, "The role is changed.", func(userID uuid.UUID) error {
		return s.backend.SetRole(ctx, v.team.ID, userID, role)
	})
}

func (s *server) removeMember(ctx context.Context, v *visit) error {
	return s.changeMember(ctx, v, "The person is not a member any more.", func(userID uuid.UUID) error {
		return s.backend.RemoveMember(ctx, v.team.ID, userID)
	})
}

func (s *server) revokeInvitation(ctx context.Context, v *visit) error {
	return s.changeMember(ctx, v, "The invitation is revoked.", func(userID uuid.UUID) error {
		return s.backend.RevokeInvitation(ctx, v.team.ID, userID)
	})
}

// changeMember runs a change of the person in the path.
func (s *server) changeMember(ctx context.Context, v *visit, done string, change func(uuid.UUID) error) error {
	userID, err := v.id("user_id")
	if err != nil {
		return err
	}
	problems := formErrors{}
	if err := problems.addConflict("member", change(userID)); err != nil {
		return err
	}
	if len(problems) > 0 {
		return s.answerMembers(ctx, v, problems, func(*membersView) {})
	}
	next := v.path("members")
	if m, err := s.backend.Membership(ctx, v.team.ID, v.user.ID); err != nil || m.Role < roomsensor.Admin {
		next = "/" // The person changed the own role, and may no longer see the page.
	}
	return v.redirect(next, done)
}

// answerMembers shows the page again, with a link or with the errors of a form.
func (s *server) answerMembers(ctx context.Context, v *visit, problems formErrors, fill func(*membersView)) error {
	view, err := s.members(ctx, v)
	if err != nil {
		return err
	}
	view.Errors = problems
	fill(view)
	if len(problems) > 0 {
		return v.invalid("members", view)
	}
	return v.render("members", view)
}

// memberConflicts are the sentences about refused changes of members.
var memberConflicts = map[roomsensor.MemberConflict]string{
	roomsensor.ConflictMember:    "This person is a member already. Change the role in the list.",
	roomsensor.ConflictDisabled:  "This account is disabled. Ask the operator of the service to enable it.",
	roomsensor.ConflictFull:      "The team has as many members and invitations as it may have. Remove one first.",
	roomsensor.ConflictLastAdmin: "This person is the only admin. Make another member an admin first.",
	roomsensor.ConflictOtherTeams: "This person belongs to other teams too. Only the operator of the service can make a " +
		"link for a new password.",
}

// addConflict adds a refused change to the errors of a field, and returns any other error.
func (e formErrors) addConflict(field string, err error) error {
	conflict, ok := errors.AsType[*roomsensor.MemberConflictError](err)
	if !ok {
		return err
	}
	e.add(field, memberConflicts[conflict.Conflict])
	return nil
}
