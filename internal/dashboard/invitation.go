package dashboard

import (
	"context"
	"errors"
	"net/http"

	"github.com/google/uuid"

	"roomsensor/internal/password"
	"roomsensor/internal/roomsensor"
)

// Links uses the links with which people join a team or set another password.
type Links interface {
	SignInLink(ctx context.Context, token string) (roomsensor.SignInLink, error)
	AcceptInvitation(ctx context.Context, token string, userID uuid.UUID, name, hash string) error
	UseReset(ctx context.Context, token, hash string) (roomsensor.User, error)
}

// invitationView is the data of the page of a link.
type invitationView struct {
	Link      roomsensor.SignInLink
	Token     string
	SignedIn  bool // the person of the link is signed in
	OtherUser string
	Name      string
	Min       int
	Errors    formErrors
}

// NeedsPassword reports whether the form sets a password.
func (w *invitationView) NeedsPassword() bool {
	return w.Link.Purpose == roomsensor.LinkReset || !w.Link.User.HasPassword
}

// readLink returns the data of the page, or nil after it answered that the link does not work any more.
func (s *server) readLink(ctx context.Context, v *visit) (*invitationView, error) {
	token := v.echo.Param("token")
	link, err := s.backend.SignInLink(ctx, token)
	if errors.Is(err, roomsensor.ErrNotFound) {
		return nil, v.write(http.StatusNotFound, "link-ended", nil)
	}
	if err != nil {
		return nil, err
	}
	view := &invitationView{
		Link: link, Token: token, SignedIn: v.user.ID == link.User.ID, Name: link.User.Name,
		Min: roomsensor.MinPassword, Errors: formErrors{},
	}
	if v.user.ID != uuid.Nil && !view.SignedIn {
		view.OtherUser = v.user.Email
	}
	return view, nil
}

func (s *server) showInvitation(ctx context.Context, v *visit) error {
	view, err := s.readLink(ctx, v)
	if view == nil {
		return err
	}
	return v.render("invitation", view)
}

func (s *server) acceptInvitation(ctx context.Context, v *visit) error {
	if err := v.checkForm(); err != nil {
		return err
	}
	view, err := s.readLink(ctx, v)
	if view == nil {
		return err
	}
	switch {
	case view.NeedsPassword():
		return s.setPassword(ctx, v, view)
	case !view.SignedIn:
		return v.invalid("invitation", view) // It asks the person to sign in first.
	}
	err = s.backend.AcceptInvitation(ctx, view.Token, v.user.ID, "", "")
	if err != nil {
		return s.linkEnded(v, err)
	}
	return v.redirect("/teams/"+view.Link.Team.ID.String(), "You are a member of "+view.Link.Team.Name+".")
}

// setPassword uses the link of a person who sets a password, and signs the person in.
func (s *server) setPassword(ctx context.Context, v *visit, view *invitationView) error {
	user, secret := view.Link.User, v.secret("password")
	view.Errors.addCheck("password", "The password", roomsensor.CheckPassword(secret, user.Email))
	reset := view.Link.Purpose == roomsensor.LinkReset
	if view.Name = v.form("name"); view.Name != "" && !reset {
		view.Errors.addCheck("name", "The name", roomsensor.CheckName(view.Name))
	}
	if len(view.Errors) > 0 {
		return v.invalid("invitation", view)
	}
	hash, err := password.Default.Hash(ctx, secret)
	if err != nil {
		return err
	}
	ctx = withPerson(ctx, &view.Link.User) // The holder of the link acts as its person.
	next := "/"
	if reset {
		user, err = s.backend.UseReset(ctx, view.Token, hash)
	} else if err = s.backend.AcceptInvitation(ctx, view.Token, user.ID, view.Name, hash); err == nil {
		next = "/teams/" + view.Link.Team.ID.String()
		user, err = s.backend.User(ctx, user.ID)
	}
	if err != nil {
		return s.linkEnded(v, err)
	}
	if err := s.enter(ctx, v, &user); err != nil {
		return err
	}
	return v.redirect(next, "Your password is set, and you are signed in.")
}

// linkEnded answers for a link that was used while the page was open.
func (s *server) linkEnded(v *visit, err error) error {
	if errors.Is(err, roomsensor.ErrNotFound) {
		return v.write(http.StatusNotFound, "link-ended", nil)
	}
	return err
}
