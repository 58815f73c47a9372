package dashboard

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/httpedge"
	"roomsensor/internal/password"
	"roomsensor/internal/roomsensor"
)

// SignIn checks passwords and limits the attempts.
type SignIn interface {
	Credentials(ctx context.Context, email string) (roomsensor.Credentials, error)
	// CountSignIn counts an attempt. It returns how long the person has to wait, or 0.
	CountSignIn(ctx context.Context, a roomsensor.SignInAttempt) (time.Duration, error)
	// SignedIn forgets the failed attempts for an account, and remembers the address.
	SignedIn(ctx context.Context, userID uuid.UUID, a roomsensor.SignInAttempt) error
}

// signInView is the data of the sign-in page.
type signInView struct {
	Email, Next string
	Errors      formErrors
}

func (s *server) showSignIn(_ context.Context, v *visit) error {
	next := ownPath(v.echo.QueryParam("next"))
	if v.user.ID != uuid.Nil {
		return v.redirect(next, "")
	}
	return v.render("sign-in", signInView{Next: next})
}

// wrongSignIn is the answer to an unknown account, too.
const wrongSignIn = "No account has this email address and password. Check both and try again."

func (s *server) signIn(ctx context.Context, v *visit) error {
	if err := v.checkForm(); err != nil {
		return err
	}
	view := signInView{Email: v.form("email"), Next: ownPath(v.form("next")), Errors: formErrors{}}
	wait, err := s.backend.CountSignIn(ctx, s.attempt(v, view.Email))
	if err != nil {
		return err
	}
	if wait > 0 {
		v.echo.Response().Header().Set("Retry-After", httpedge.Seconds(wait))
		view.Errors["password"] = tooManyAttempts(wait) +
			", or ask an admin of your team for a link that sets another password."
		return v.write(http.StatusTooManyRequests, "sign-in", view)
	}
	user, ok, err := s.checkPassword(ctx, view.Email, v.secret("password"))
	if err != nil {
		return err
	}
	if !ok {
		view.Errors["password"] = wrongSignIn
		return v.invalid("sign-in", view)
	}
	if err := s.enter(ctx, v, &user); err != nil {
		return err
	}
	return v.redirect(view.Next, "")
}

// tooManyAttempts begins a sentence for a person who has to wait.
func tooManyAttempts(wait time.Duration) string {
	return "Too many attempts. Try again in " + span(wait.Truncate(time.Minute)+time.Minute)
}

// enter signs a person in with a new session, and forgets the failed attempts for the account.
func (s *server) enter(ctx context.Context, v *visit, user *roomsensor.User) error {
	if err := s.sessions.begin(ctx, user); err != nil {
		return err
	}
	return s.backend.SignedIn(ctx, user.ID, s.attempt(v, user.Email))
}

// attempt returns an attempt to sign in from the address of the client.
func (s *server) attempt(v *visit, email string) roomsensor.SignInAttempt {
	address, _ := netip.ParseAddr(s.clients(v.echo.Request())) // An unknown address is counted like any other.
	return roomsensor.SignInAttempt{Email: email, Address: address}
}

// checkPassword reports whether a person with an email address has a password. For an unknown account it takes as long.
func (s *server) checkPassword(ctx context.Context, email, secret string) (user roomsensor.User, ok bool, err error) {
	credentials, err := s.backend.Credentials(ctx, email)
	if err != nil && !errors.Is(err, roomsensor.ErrNotFound) {
		return user, false, err
	}
	known := err == nil
	ok, err = password.Matches(ctx, cmp.Or(credentials.PasswordHash, password.Unknown), secret)
	return credentials.User, ok && known, err
}

// ownPath returns a path of the dashboard to which a person may be sent, or "/" for any other text: a link must not
// lead to another site. Browsers treat a backslash like a slash, and ignore tabs and line breaks.
func ownPath(next string) string {
	if !strings.HasPrefix(next, "/") || strings.HasPrefix(next, "//") || strings.ContainsAny(next, "\\\t\r\n") {
		return "/"
	}
	return next
}

func (s *server) signOut(ctx context.Context, v *visit) error {
	if err := s.sessions.end(ctx); err != nil {
		return err
	}
	return v.redirect("/sign-in", "")
}
