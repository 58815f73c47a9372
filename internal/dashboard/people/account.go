package people

import (
	"context"
	"strconv"

	"github.com/google/uuid"

	"roomsensor/internal/dashboard/page"
	"roomsensor/internal/password"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/roomsensor/accounts"
)

// Account changes what people set for themselves.
type Account interface {
	RenameUser(ctx context.Context, userID uuid.UUID, name string) error
	ChooseFormat(ctx context.Context, userID uuid.UUID, c roomsensor.FormatChoice) error
	// ChangePassword ends all sessions of the person, and returns the person, of whom a new session may begin.
	ChangePassword(ctx context.Context, userID uuid.UUID, hash string) (accounts.User, error)
	SignOutEverywhere(ctx context.Context, userID uuid.UUID) error
}

// accountView is the data of the account page.
type accountView struct {
	Email, Name string
	Min         int
	Teams       []accounts.Membership
	Formats     []formatField
	Errors      page.FormErrors
}

// formatField is a choice of a format. Its value is "true", "false", or empty for what the browser says.
type formatField struct{ Name, Label, No, Yes, Value string }

// formatFields returns the choices of a person, in the order of roomsensor.FormatChoice.
func formatFields(c roomsensor.FormatChoice) []formatField {
	value := func(chosen *bool) string {
		if chosen == nil {
			return ""
		}
		return strconv.FormatBool(*chosen)
	}
	return []formatField{
		{"fahrenheit", "Temperatures", "°C", "°F", value(c.Fahrenheit)},
		{"hour12", "Times", "24 hours: 15:04", "12 hours: 3:04 PM", value(c.Hour12)},
		{"month_first", "Dates", "day first: 31 Jan", "month first: Jan 31", value(c.MonthFirst)},
	}
}

func (p *Pages) account(ctx context.Context, v *page.Visit) (*accountView, error) {
	teams, err := p.backend.Memberships(ctx, v.User.ID)
	return &accountView{
		v.User.Email, v.User.Name, roomsensor.MinPassword, teams, formatFields(v.User.Format), page.FormErrors{},
	}, err
}

// ShowAccount shows the account of the person.
func (p *Pages) ShowAccount(ctx context.Context, v *page.Visit) error {
	view, err := p.account(ctx, v)
	if err != nil {
		return err
	}
	return v.Render("account", view)
}

// ChangeName changes the name of the person.
func (p *Pages) ChangeName(ctx context.Context, v *page.Visit) error {
	view, err := p.account(ctx, v)
	if err != nil {
		return err
	}
	view.Name = v.Form("name")
	if err := roomsensor.CheckName(view.Name); err != nil {
		view.Errors.Add("name", "The name "+err.Error()+".")
		return v.Invalid("account", view)
	}
	if err := p.backend.RenameUser(ctx, v.User.ID, view.Name); err != nil {
		return err
	}
	return v.Redirect("/account", "Your name is saved.")
}

// ChooseFormat changes how the person reads temperatures, times of day and dates.
func (p *Pages) ChooseFormat(ctx context.Context, v *page.Visit) error {
	view, err := p.account(ctx, v)
	if err != nil {
		return err
	}
	var chosen roomsensor.FormatChoice
	for i, to := range []**bool{&chosen.Fahrenheit, &chosen.Hour12, &chosen.MonthFirst} {
		field := &view.Formats[i]
		field.Value = v.Form(field.Name)
		switch field.Value {
		case "":
		case "true", "false":
			*to = new(field.Value == "true")
		default:
			view.Errors.Add(field.Name, "Choose one of the list.")
		}
	}
	if len(view.Errors) > 0 {
		return v.Invalid("account", view)
	}
	if err := p.backend.ChooseFormat(ctx, v.User.ID, chosen); err != nil {
		return err
	}
	return v.Redirect("/account", "Pages and mails show temperatures, times and dates as you chose.")
}

// ChangePassword needs the current password, so that someone at an unattended browser cannot take the account over.
// Attempts count like those to sign in.
func (p *Pages) ChangePassword(ctx context.Context, v *page.Visit) error {
	view, err := p.account(ctx, v)
	if err != nil {
		return err
	}
	wait, err := p.backend.CountSignIn(ctx, p.attempt(v, v.User.Email))
	if err != nil {
		return err
	}
	if wait > 0 {
		view.Errors["current"] = tooManyAttempts(wait) + "."
		return v.Invalid("account", view)
	}
	_, ok, err := p.checkPassword(ctx, v.User.Email, v.Secret("current"))
	if err != nil {
		return err
	}
	if !ok {
		view.Errors["current"] = "This is not your current password. Enter it again."
	}
	next := v.Secret("password")
	names := make([]string, len(view.Teams))
	for i := range view.Teams {
		names[i] = view.Teams[i].Team.Name
	}
	p.checkNew(view.Errors, "The new password", next, &v.User, names...)
	if len(view.Errors) > 0 {
		return v.Invalid("account", view)
	}
	return p.storePassword(ctx, v, next)
}

// storePassword stores a password. Only the session of this browser goes on, with a new token.
func (p *Pages) storePassword(ctx context.Context, v *page.Visit, secret string) error {
	hash, err := password.Default.Hash(ctx, secret)
	if err != nil {
		return err
	}
	user, err := p.backend.ChangePassword(ctx, v.User.ID, hash)
	if err != nil {
		return err
	}
	if err := p.enter(ctx, v, &user); err != nil {
		return err
	}
	return v.Redirect("/account", "Your password is changed. All other sessions have ended.")
}

// SignOutEverywhere ends all sessions of the person.
func (p *Pages) SignOutEverywhere(ctx context.Context, v *page.Visit) error {
	if err := p.backend.SignOutEverywhere(ctx, v.User.ID); err != nil {
		return err
	}
	return p.SignOut(ctx, v)
}
