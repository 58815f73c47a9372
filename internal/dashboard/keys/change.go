package keys

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/dashboard/page"
	"roomsensor/internal/roomsensor"
)

// overlap is the time for which a replaced key stays valid.
type overlap struct {
	Value, Name string
	duration    time.Duration
}

var overlaps = []overlap{
	{"1h", "1 hour", time.Hour},
	{"1d", "1 day", 24 * time.Hour},
	{"7d", "7 days", 7 * 24 * time.Hour},
	{"30d", "30 days", 30 * 24 * time.Hour},
}

// keyPage is the data of the page of one key.
type keyPage struct {
	keyView
	Form     uuid.UUID // see keyForm
	Overlaps []overlap
	Overlap  string // the one that is selected
	Problem  string // why the key cannot be replaced
}

// Show shows a key.
func (p *Pages) Show(ctx context.Context, v *page.Visit) error {
	key, _, err := p.findKey(ctx, v)
	if err != nil {
		return err
	}
	return v.Render("key", keyPage{keyView: key, Form: uuid.New(), Overlaps: overlaps, Overlap: "1d"})
}

// Replace creates the successor of a key, and shows its secret.
func (p *Pages) Replace(ctx context.Context, v *page.Visit) error {
	key, all, err := p.findKey(ctx, v)
	if err != nil {
		return err
	}
	form, err := uuid.Parse(v.Form("form"))
	at := slices.IndexFunc(overlaps, func(o overlap) bool { return o.Value == v.Form("overlap") })
	if err != nil || at < 0 {
		return page.ErrMalformed
	}
	if problem := page.Message(roomsensor.CheckNewKey("", all, v.Now)); problem != "" {
		return v.Invalid("key", keyPage{
			keyView: key, Form: form, Overlaps: overlaps, Overlap: overlaps[at].Value, Problem: problem,
		})
	}
	next := roomsensor.Key{ID: roomsensor.KeyIDOf(v.Team.ID, form)}
	var text string
	text, next.SecretSHA256 = roomsensor.GenerateKeyOf(key.Kind.kind, next.ID)
	old, created, err := key.Kind.rotate(ctx, v.Team.ID, key.ID, next, overlaps[at].duration)
	if err != nil {
		return refuseKey(v, key.Kind, next.ID, err)
	}
	return v.Render("key-created", newKeyView{
		Kind: key.Kind, Key: created, Text: text, Replaces: &old, PublicURL: p.publicURL,
	})
}

// Revoke revokes a key.
func (p *Pages) Revoke(ctx context.Context, v *page.Visit) error {
	kind, err := p.keyKind(v)
	if err != nil {
		return err
	}
	if _, err := kind.revoke(ctx, v.Team.ID, v.Echo.Param("key_id")); err != nil {
		return err
	}
	return v.Redirect(v.Path("keys"), "The key "+v.Echo.Param("key_id")+" is revoked. "+
		"Requests with it are refused everywhere within 5 seconds.")
}
