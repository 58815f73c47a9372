package dashboard

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/roomsensor"
)

// overlap is how long a key that is replaced stays valid.
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

func (s *server) showKey(ctx context.Context, v *visit) error {
	key, _, err := s.findKey(ctx, v)
	if err != nil {
		return err
	}
	return v.render("key", keyPage{keyView: key, Form: uuid.New(), Overlaps: overlaps, Overlap: "1d"})
}

func (s *server) replaceKey(ctx context.Context, v *visit) error {
	if err := v.checkForm(); err != nil {
		return err
	}
	key, all, err := s.findKey(ctx, v)
	if err != nil {
		return err
	}
	form, err := uuid.Parse(v.form("form"))
	at := slices.IndexFunc(overlaps, func(o overlap) bool { return o.Value == v.form("overlap") })
	if err != nil || at < 0 {
		return errMalformed
	}
	if problem := checkKeyLimit(all, v.now); problem != "" {
		return v.invalid("key", keyPage{
			keyView: key, Form: form, Overlaps: overlaps, Overlap: overlaps[at].Value, Problem: problem,
		})
	}
	next := roomsensor.Key{ID: roomsensor.KeyIDOf(v.team.ID, form)}
	var text string
	text, next.SecretSHA256 = roomsensor.GenerateKeyOf(key.Kind.kind, next.ID)
	old, created, err := key.Kind.rotate(ctx, v.team.ID, key.ID, next, overlaps[at].duration)
	if err != nil {
		return v.refuseKey(key.Kind, next.ID, err)
	}
	return v.render("key-created", newKeyView{
		Kind: key.Kind, Key: created, Text: text, Replaces: &old, PublicURL: s.publicURL,
	})
}

func (s *server) revokeKey(ctx context.Context, v *visit) error {
	kind, err := s.keyKind(v)
	if err != nil {
		return err
	}
	if _, err := kind.revoke(ctx, v.team.ID, v.echo.Param("key_id")); err != nil {
		return err
	}
	return v.redirect(v.path("keys"), "The key "+v.echo.Param("key_id")+" is revoked. "+
		"Requests with it are refused everywhere within 5 seconds.")
}
