package people

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/dashboard/page"
	"roomsensor/internal/fairshare"
	"roomsensor/internal/httpedge"
	"roomsensor/internal/password"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/roomsensor/accounts"
	"roomsensor/internal/wording"
)

// SignIn checks passwords and limits the attempts.
type SignIn interface {
	Credentials(ctx context.Context, email string) (accounts.Credentials, error)
	// CountSignIn counts an attempt. It returns how long the person has to wait, or 0.
	CountSignIn(ctx context.Context, a accounts.SignInAttempt) (time.Duration, error)
	// SignedIn forgets the failed attempts for an account, and remembers the address.
	SignedIn(ctx context.Context, userID uuid.UUID, a accounts.SignInAttempt) error
}

// signInView is the data of the sign-in page.
type signInView struct {
	Email, Next string
	Ended       string // "kept" or "lost": the session ended before a form was saved
	SignedOut   bool   // the person has just signed out
	Errors      page.FormErrors
}

// ShowSignIn shows the sign-in page.
func (p *Pages) ShowSignIn(_ context.Context, v *page.Visit) error {
	next := ownPath(v.Echo.QueryParam("next"))
	if v.User.ID != uuid.Nil {
		return v.Redirect(next, "")
	}
	return v.Render("sign-in", signInView{
		Next: next, Ended: v.Echo.QueryParam("ended"), SignedOut: v.Echo.QueryParam("signed-out") != "",
	})
}

const (
	// signInsAtOnce is how many passwords are checked at the same time. More would only wait for a processor.
	signInsAtOnce = 4
	// networkSignIns is how many requests of a network wait for the check of a password, which takes 50 ms. Few of them
	// keep the wait of others short, and somebody who has a network has many addresses.
	networkSignIns = 4
	// allSignIns is how many wait in all: as many as are checked before the requests end.
	allSignIns = 128
)

func newSignIns() *fairshare.Limiter {
	busy := fairshare.Limit{
		Most: signInsAtOnce, Waiting: allSignIns, RetryAfter: 5 * time.Second,
		Message: "Too many people sign in at this moment. Try again in a few seconds.",
	}
	return fairshare.New(fairshare.Config{
		Name: "sign_ins", Key: fairshare.Limit{Most: 1, Waiting: networkSignIns}, Total: busy,
	})
}

// wrongSignIn is the answer to an unknown account, too.
const wrongSignIn = "No account has this email address and password. Check both and try again."

// SignIn checks a password and signs the person in.
func (p *Pages) SignIn(ctx context.Context, v *page.Visit) error {
	view := signInView{Email: v.Form("email"), Next: ownPath(v.Form("next")), Errors: page.FormErrors{}}
	attempt := p.attempt(v, view.Email)
	turn, err := p.signIns.Acquire(ctx, fairshare.Owner{Key: accounts.Network(attempt.Address)}, 1)
	if err != nil {
		return err
	}
	defer turn.Release()
	wait, err := p.backend.CountSignIn(ctx, attempt)
	if err != nil {
		return err
	}
	if wait > 0 {
		v.Echo.Response().Header().Set("Retry-After", httpedge.Seconds(wait))
		view.Errors["password"] = tooManyAttempts(wait) +
			", or ask an admin of your team for a link that sets another password."
		return v.Write(http.StatusTooManyRequests, "sign-in", view)
	}
	user, ok, err := p.checkPassword(ctx, view.Email, v.Secret("password"))
	if err != nil {
		return err
	}
	if !ok {
		view.Errors["password"] = wrongSignIn
		return v.Invalid("sign-in", view)
	}
	if err := p.enter(ctx, v, &user); err != nil {
		return err
	}
	if v.HasKeptForm() {
		return v.Redirect("/kept-form", "")
	}
	return v.Redirect(view.Next, "")
}

// ShowKeptForm shows the form that the person posted after the session had ended, to send it again.
func (p *Pages) ShowKeptForm(_ context.Context, v *page.Visit) error {
	form, ok := v.KeptForm()
	if !ok {
		return v.Redirect("/", "")
	}
	return v.Render("kept-form", form)
}

// tooManyAttempts begins a sentence for a person who has to wait.
func tooManyAttempts(wait time.Duration) string {
	return "Too many attempts. Try again in " + wording.Span(wait.Truncate(time.Minute)+time.Minute)
}

// enter signs a person in with a new session, and forgets the failed attempts for the account.
func (p *Pages) enter(ctx context.Context, v *page.Visit, user *accounts.User) error {
	if err := v.SignIn(ctx, user); err != nil {
		return err
	}
	return p.backend.SignedIn(ctx, user.ID, p.attempt(v, user.Email))
}

// attempt returns an attempt to sign in from the address of the client.
func (p *Pages) attempt(v *page.Visit, email string) accounts.SignInAttempt {
	address, _ := netip.ParseAddr(v.Client()) // An unknown address is counted like any other.
	return accounts.SignInAttempt{Email: email, Address: address}
}

// checkPassword reports whether a person with an email address has a password. For an unknown account it takes as long.
func (p *Pages) checkPassword(ctx context.Context, email, secret string) (user accounts.User, ok bool, err error) {
	credentials, err := p.backend.Credentials(ctx, email)
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

// SignOut ends the session.
func (p *Pages) SignOut(ctx context.Context, v *page.Visit) error {
	if err := v.SignOut(ctx); err != nil {
		return err
	}
	return v.Redirect("/sign-in?signed-out=1", "")
}
