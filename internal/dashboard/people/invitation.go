package people

import (
	"context"
	"errors"
	"net/http"

	"github.com/google/uuid"

	"roomsensor/internal/dashboard/page"
	"roomsensor/internal/password"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/roomsensor/accounts"
)

// Links uses the links with which people join a team or set another password.
type Links interface {
	SignInLink(ctx context.Context, token string) (accounts.SignInLink, error)
	AcceptInvitation(ctx context.Context, token string, userID uuid.UUID, name, hash string) error
	UseReset(ctx context.Context, token, hash string) (accounts.User, error)
}

// invitationView is the data of the page of a link.
type invitationView struct {
	Link      accounts.SignInLink
	Token     string
	SignedIn  bool // the person of the link is signed in
	OtherUser string
	Name      string
	Min       int
	Errors    page.FormErrors
}

// NeedsPassword reports whether the form sets a password.
func (w *invitationView) NeedsPassword() bool {
	return w.Link.Purpose == accounts.LinkReset || !w.Link.User.HasPassword
}

// readLink returns the data of the page, or nil after it answered that the link does not work any more.
func (p *Pages) readLink(ctx context.Context, v *page.Visit) (*invitationView, error) {
	token := v.Echo.Param("token")
	link, err := p.backend.SignInLink(ctx, token)
	if err != nil {
		return nil, p.linkEnded(v, err)
	}
	view := &invitationView{
		Link: link, Token: token, SignedIn: v.User.ID == link.User.ID, Name: link.User.Name,
		Min: roomsensor.MinPassword, Errors: page.FormErrors{},
	}
	if v.User.ID != uuid.Nil && !view.SignedIn {
		view.OtherUser = v.User.Email
	}
	return view, nil
}

// ShowInvitation shows the page of a link.
func (p *Pages) ShowInvitation(ctx context.Context, v *page.Visit) error {
	view, err := p.readLink(ctx, v)
	if view == nil {
		return err
	}
	return v.Render("invitation", view)
}

// AcceptInvitation uses a link.
func (p *Pages) AcceptInvitation(ctx context.Context, v *page.Visit) error {
	view, err := p.readLink(ctx, v)
	if view == nil {
		return err
	}
	switch {
	case view.NeedsPassword():
		return p.setPassword(ctx, v, view)
	case !view.SignedIn:
		return v.Invalid("invitation", view) // It asks the person to sign in first.
	}
	err = p.backend.AcceptInvitation(ctx, view.Token, v.User.ID, "", "")
	if err != nil {
		return p.linkEnded(v, err)
	}
	return v.Redirect("/teams/"+view.Link.Team.ID.String(), "You are a member of "+view.Link.Team.Name+".")
}

// setPassword uses the link of a person who sets a password, and signs the person in.
func (p *Pages) setPassword(ctx context.Context, v *page.Visit, view *invitationView) error {
	user, secret := view.Link.User, v.Secret("password")
	p.checkNew(view.Errors, "The password", secret, &user, view.Link.Team.Name)
	reset := view.Link.Purpose == accounts.LinkReset
	if view.Name = v.Form("name"); view.Name != "" && !reset {
		view.Errors.AddCheck("name", "The name", roomsensor.CheckName(view.Name))
	}
	if len(view.Errors) > 0 {
		return v.Invalid("invitation", view)
	}
	hash, err := password.Default.Hash(ctx, secret)
	if err != nil {
		return err
	}
	ctx = page.WithPerson(ctx, &view.Link.User, nil) // The holder of the link acts as its person.
	next := "/"
	if reset {
		user, err = p.backend.UseReset(ctx, view.Token, hash)
	} else if err = p.backend.AcceptInvitation(ctx, view.Token, user.ID, view.Name, hash); err == nil {
		next = "/teams/" + view.Link.Team.ID.String()
		user, err = p.backend.User(ctx, user.ID)
	}
	if err != nil {
		return p.linkEnded(v, err)
	}
	if err := p.enter(ctx, v, &user); err != nil {
		return err
	}
	return v.Redirect(next, "Your password is set, and you are signed in.")
}

// linkEnded answers for a link that does not work any more.
func (p *Pages) linkEnded(v *page.Visit, err error) error {
	if errors.Is(err, roomsensor.ErrNotFound) {
		return v.Write(http.StatusNotFound, "link-ended", nil)
	}
	return err
}
