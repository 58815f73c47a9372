package dashboard

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/google/uuid"

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
	Errors                        formErrors
}

// The choices for the expiration of a key.
const (
	expiresInMonth = "month"
	expiresInYear  = "year"
	expiresNever   = "never"
	expiresOnDate  = "date"
)

func (s *server) showKeyForm(_ context.Context, v *visit) error {
	kind, err := s.keyKind(v)
	if err != nil {
		return err
	}
	form := keyForm{
		Kind: kind, Form: uuid.New(), Scope: string(roomsensor.ScopeRead), Expires: expiresInYear, Zone: v.zone().String(),
	}
	if !kind.HasScope() {
		form.Expires = expiresNever // A device in the field cannot get another one easily.
	}
	return v.render("key-new", form)
}

// newKeyView is the only page that shows a secret. It is the response to a form, and never a page with an address.
type newKeyView struct {
	Kind      *keyKind
	Key       roomsensor.Key
	Text      string
	Replaces  *roomsensor.Key // nil for a key that replaces none
	PublicURL string          // of the API
}

func (s *server) createKey(ctx context.Context, v *visit) error {
	if err := v.checkForm(); err != nil {
		return err
	}
	kind, err := s.keyKind(v)
	if err != nil {
		return err
	}
	form, key, err := readKeyForm(ctx, v, kind)
	if err != nil {
		return err
	}
	if len(form.Errors) > 0 {
		return v.invalid("key-new", form)
	}
	var text string
	text, key.SecretSHA256 = roomsensor.GenerateKeyOf(kind.kind, key.ID)
	created, err := kind.create(ctx, key)
	if err != nil {
		return v.refuseKey(kind, key.ID, err)
	}
	return v.render("key-created", newKeyView{Kind: kind, Key: created, Text: text, PublicURL: s.publicURL})
}

// readKeyForm checks a form for a new key.
func readKeyForm(ctx context.Context, v *visit, kind *keyKind) (keyForm, roomsensor.Key, error) {
	form := keyForm{
		Kind: kind, Label: v.form("label"), Scope: v.form("scope"), Expires: v.form("expires"), Before: v.form("before"),
		Zone: v.zone().String(), Errors: formErrors{},
	}
	var err error
	if form.Form, err = uuid.Parse(v.form("form")); err != nil {
		return form, roomsensor.Key{}, errMalformed
	}
	key := roomsensor.Key{ID: roomsensor.KeyIDOf(v.team.ID, form.Form), TeamID: v.team.ID, Label: &form.Label}
	if roomsensor.CheckName(form.Label) != nil {
		form.Errors.add("label", "Enter what the key is for, in 1 to 200 characters, such as the name of a program.")
	}
	if kind.HasScope() {
		key.Scope = roomsensor.Scope(form.Scope)
		if key.Scope != roomsensor.ScopeRead && key.Scope != roomsensor.ScopeReadWrite {
			form.Errors.add("scope", "Choose what the key may do.")
		}
	}
	var problem string
	key.ExpiresAt, problem = expiration(form.Expires, form.Before, v.now, v.zone())
	form.Errors.add("expires", problem)
	all, err := kind.list(ctx, v.team.ID)
	form.Errors.add("label", checkKeyLimit(all, v.now))
	return form, key, err
}

// maxNewKeys is how many keys of a kind people of a team may create in keyPeriod. Receivers hold the upload credentials
// of all teams in memory, and keys are kept after their end.
const (
	maxNewKeys = 200
	keyPeriod  = 30 * 24 * time.Hour
)

// checkKeyLimit returns the sentence for a team that created too many keys of a kind, of which all are given, or "".
func checkKeyLimit(all []roomsensor.Key, now time.Time) string {
	recent := 0
	for i := range all {
		if all[i].CreatedAt.After(now.Add(-keyPeriod)) {
			recent++
		}
	}
	if recent < maxNewKeys {
		return ""
	}
	return "Your team created 200 keys of this kind in the last 30 days, which is the limit. " +
		"Use the keys that exist, or ask your operator for more."
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
func (v *visit) refuseKey(kind *keyKind, keyID string, err error) error {
	view := keyRefusal{Kind: kind, KeyID: keyID}
	if invalid, ok := errors.AsType[*roomsensor.KeyNotValidError](err); ok {
		view.KeyID, view.NotValid = invalid.ID, true
	} else if !errors.Is(err, roomsensor.ErrKeyExists) {
		return err
	}
	return v.write(http.StatusConflict, "key-refused", view)
}

// keyRefusal is the data of the page that says why a form created no key.
type keyRefusal struct {
	Kind     *keyKind
	KeyID    string // the key that the form created before, or the key to replace
	NotValid bool   // the key to replace is no longer valid
}
