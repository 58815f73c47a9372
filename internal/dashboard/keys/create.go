package keys

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/dashboard/page"
	"roomsensor/internal/roomsensor"
)

// keyForm is the form for a new key, as it was entered.
type keyForm struct {
	Kind *keyKind
	// Form identifies the form. It determines the id of the key, so that a form that is sent again, such as by a reload,
	// creates no second key.
	Form                          uuid.UUID
	Label, Scope, Expires, Before string
	Zone                          string
	Errors                        page.FormErrors
}

// The choices for the expiration of a key.
const (
	expiresInMonth = "month"
	expiresInYear  = "year"
	expiresNever   = "never"
	expiresOnDate  = "date"
)

// ShowForm shows the form for a new key.
func (p *Pages) ShowForm(_ context.Context, v *page.Visit) error {
	kind, err := p.keyKind(v)
	if err != nil {
		return err
	}
	form := keyForm{
		Kind: kind, Form: uuid.New(), Scope: string(roomsensor.ScopeRead), Expires: expiresInYear, Zone: v.Zone().String(),
	}
	if !kind.HasScope() {
		form.Expires = expiresNever // A device in the field cannot get another one easily.
	}
	return v.Render("key-new", form)
}

// newKeyView is the only page that shows a secret. It is the response to a form, and never a page with an address.
type newKeyView struct {
	Kind      *keyKind
	Key       roomsensor.Key
	Text      string
	Replaces  *roomsensor.Key // nil for a key that replaces none
	PublicURL string          // of the API
}

// Create creates a key, and shows its secret.
func (p *Pages) Create(ctx context.Context, v *page.Visit) error {
	kind, err := p.keyKind(v)
	if err != nil {
		return err
	}
	form, key, err := readKeyForm(ctx, v, kind)
	if err != nil {
		return err
	}
	if len(form.Errors) > 0 {
		return v.Invalid("key-new", form)
	}
	var text string
	text, key.SecretSHA256 = roomsensor.GenerateKeyOf(kind.kind, key.ID)
	created, err := kind.create(ctx, key)
	if err != nil {
		return refuseKey(v, kind, key.ID, err)
	}
	return v.Render("key-created", newKeyView{Kind: kind, Key: created, Text: text, PublicURL: p.publicURL})
}

// readKeyForm checks a form for a new key.
func readKeyForm(ctx context.Context, v *page.Visit, kind *keyKind) (keyForm, roomsensor.Key, error) {
	form := keyForm{
		Kind: kind, Label: v.Form("label"), Scope: v.Form("scope"), Expires: v.Form("expires"), Before: v.Form("before"),
		Zone: v.Zone().String(), Errors: page.FormErrors{},
	}
	var err error
	if form.Form, err = uuid.Parse(v.Form("form")); err != nil {
		return form, roomsensor.Key{}, page.ErrMalformed
	}
	key := roomsensor.Key{ID: roomsensor.KeyIDOf(v.Team.ID, form.Form), TeamID: v.Team.ID, Label: &form.Label}
	if roomsensor.CheckName(form.Label) != nil {
		form.Errors.Add("label", "Enter what the key is for, in 1 to 200 characters, such as the name of a program.")
	}
	if kind.HasScope() {
		key.Scope = roomsensor.Scope(form.Scope)
		if key.Scope != roomsensor.ScopeRead && key.Scope != roomsensor.ScopeReadWrite {
			form.Errors.Add("scope", "Choose what the key may do.")
		}
	}
	var problem string
	key.ExpiresAt, problem = expiration(form.Expires, form.Before, v.Now, v.Zone())
	form.Errors.Add("expires", problem)
	all, err := kind.list(ctx, v.Team.ID)
	form.Errors.AddRule(roomsensor.CheckNewKey("label", all, v.Now))
	return form, key, err
}

// maxExpiration is how far a chosen expiration may lie ahead.
const maxExpiration = 10 * 365 * 24 * time.Hour

// expiration returns when a key expires, or what is wrong with the choice. A chosen date is the last day on which the
// key is valid.
func expiration(choice, date string, now time.Time, zone *time.Location) (at *time.Time, problem string) {
	switch choice {
	case expiresNever:
		return nil, ""
	case expiresInMonth:
		return new(now.In(zone).AddDate(0, 1, 0).UTC()), ""
	case expiresInYear:
		return new(now.In(zone).AddDate(1, 0, 0).UTC()), ""
	case expiresOnDate:
	default:
		return nil, "Choose when the key expires."
	}
	last, err := time.Parse(time.DateOnly, date)
	if err != nil {
		return nil, "Enter a date, such as 2027-01-31."
	}
	end := time.Date(last.Year(), last.Month(), last.Day()+1, 0, 0, 0, 0, zone).UTC()
	switch {
	case !end.After(now):
		return nil, "This date has passed. Enter today or a later date."
	case end.Sub(now) > maxExpiration:
		return nil, "Enter a date within the next 10 years, or choose that the key never expires."
	}
	return &end, ""
}

// refuseKey answers a form for a key that was sent before, or that replaces a key that is no longer valid. It returns
// every other error.
func refuseKey(v *page.Visit, kind *keyKind, keyID string, err error) error {
	view := keyRefusal{Kind: kind, KeyID: keyID}
	if invalid, ok := errors.AsType[*roomsensor.KeyNotValidError](err); ok {
		view.KeyID, view.NotValid = invalid.ID, true
	} else if !errors.Is(err, roomsensor.ErrKeyExists) {
		return err
	}
	return v.Write(http.StatusConflict, "key-refused", view)
}

// keyRefusal is the data of the page that says why a form created no key.
type keyRefusal struct {
	Kind     *keyKind
	KeyID    string // the key that the form created before, or the key to replace
	NotValid bool   // the key to replace is no longer valid
}
