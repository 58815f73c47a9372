package dashboard

import (
	"context"

	"github.com/google/uuid"

	"roomsensor/internal/password"
	"roomsensor/internal/roomsensor"
)

// Account changes what people set for themselves.
type Account interface {
	RenameUser(ctx context.Context, userID uuid.UUID, name string) error
	// ChangePassword ends all sessions of the person, and returns the person, of whom a new session may begin.
	ChangePassword(ctx context.Context, userID uuid.UUID, hash string) (roomsensor.User, error)
	SignOutEverywhere(ctx context.Context, userID uuid.UUID) error
}

// accountView is the data of the account page.
type accountView struct {
	Email, Name string
	Min         int
	Teams       []roomsensor.Membership
	Errors      formErrors
}

func (s *server) account(ctx context.Context, v *visit) (*accountView, error) {
	teams, err := s.backend.Memberships(ctx, v.user.ID)
	return &accountView{v.user.Email, v.user.Name, roomsensor.MinPassword, teams, formErrors{}}, err
}

func (s *server) showAccount(ctx context.Context, v *visit) error {
	view, err := s.account(ctx, v)
	if err != nil {
		return err
	}
	return v.render("account", view)
}

func (s *server) changeName(ctx context.Context, v *visit) error {
	view, err := s.account(ctx, v)
	if err == nil {
		err = v.checkForm()
	}
	if err != nil {
		return err
	}
	view.Name = v.form("name")
	if err := roomsensor.CheckName(view.Name); err != nil {
		view.Errors.add("name", "The name "+err.Error()+".")
		return v.invalid("account", view)
	}
	if err := s.backend.RenameUser(ctx, v.user.ID, view.Name); err != nil {
		return err
	}
	return v.redirect("/account", "Your name is saved.")
}

// changePassword needs the current password, so that someone at an unattended browser cannot take the account over.
// Attempts count like those to sign in.
func (s *server) changePassword(ctx context.Context, v *visit) error {
	view, err := s.account(ctx, v)
	if err == nil {
		err = v.checkForm()
	}
	if err != nil {
		return err
	}
	wait, err := s.backend.CountSignIn(ctx, s.attempt(v, v.user.Email))
	if err != nil {
		return err
	}
	if wait > 0 {
		view.Errors["current"] = tooManyAttempts(wait) + "."
		return v.invalid("account", view)
	}
	_, ok, err := s.checkPassword(ctx, v.user.Email, v.secret("current"))
	if err != nil {
		return err
	}
	if !ok {
		view.Errors["current"] = "This is not your current password. Enter it again."
	}
	next := v.secret("password")
	view.Errors.addCheck("password", "The new password", roomsensor.CheckPassword(next, v.user.Email))
	if len(view.Errors) > 0 {
		return v.invalid("account", view)
	}
	return s.storePassword(ctx, v, next)
}

// storePassword stores a password. Only the session of this browser goes on, with a new token.
func (s *server) storePassword(ctx context.Context, v *visit, secret string) error {
	hash, err := password.Default.Hash(ctx, secret)
	if err != nil {
		return err
	}
	user, err := s.backend.ChangePassword(ctx, v.user.ID, hash)
	if err != nil {
		return err
	}
	if err := s.enter(ctx, v, &user); err != nil {
		return err
	}
	return v.redirect("/account", "Your password is changed. All other sessions have ended.")
}

func (s *server) signOutEverywhere(ctx context.Context, v *visit) error {
	if err := s.backend.SignOutEverywhere(ctx, v.user.ID); err != nil {
		return err
	}
	return s.signOut(ctx, v)
}
