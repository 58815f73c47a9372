// Package keys is the pages of the API keys and upload credentials of a team.
package keys

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/dashboard/page"
	"roomsensor/internal/roomsensor"
)

// Backend reads and changes the API keys and upload credentials of a team. A Create or Rotate returns ErrKeyExists if
// the id of the new key is taken, and a Rotate a KeyNotValidError if the old one was revoked or has expired.
type Backend interface {
	APIKeys(ctx context.Context, teamID uuid.UUID) ([]roomsensor.Key, error)
	TeamIngestKeys(ctx context.Context, teamID uuid.UUID) ([]roomsensor.Key, error)
	CreateAPIKey(ctx context.Context, key roomsensor.Key) (roomsensor.Key, error)
	CreateIngestKey(ctx context.Context, key roomsensor.Key) (roomsensor.Key, error)
	RotateAPIKey(
		ctx context.Context, teamID uuid.UUID, keyID string, next roomsensor.Key, overlap time.Duration,
	) (old, created roomsensor.Key, err error)
	RotateIngestKey(
		ctx context.Context, teamID uuid.UUID, keyID string, next roomsensor.Key, overlap time.Duration,
	) (old, created roomsensor.Key, err error)
	RevokeAPIKey(ctx context.Context, teamID uuid.UUID, keyID string) (roomsensor.Key, error)
	RevokeIngestKey(ctx context.Context, teamID uuid.UUID, keyID string) (roomsensor.Key, error)
}

// Pages are the pages of keys.
type Pages struct {
	backend   Backend
	publicURL string // base URL of the API
}

// New returns the pages.
func New(backend Backend, publicURL string) *Pages { return &Pages{backend, publicURL} }

// keyKind is one of the two kinds of keys, with its words and operations.
type keyKind struct {
	Path         string // part of paths
	Name, Plural string
	Purpose      string
	kind         roomsensor.KeyKind
	list         func(context.Context, uuid.UUID) ([]roomsensor.Key, error)
	create       func(context.Context, roomsensor.Key) (roomsensor.Key, error)
	rotate       func(
		context.Context, uuid.UUID, string, roomsensor.Key, time.Duration,
	) (old, created roomsensor.Key, err error)
	revoke func(context.Context, uuid.UUID, string) (roomsensor.Key, error)
}

// HasScope reports whether keys of this kind have a scope.
func (k *keyKind) HasScope() bool { return k.kind == roomsensor.APIKey }

// keyKinds lists the kinds in the order of the page.
func (p *Pages) keyKinds() []keyKind {
	b := p.backend
	return []keyKind{
		{
			Path: "api", Name: "API key", Plural: "API keys", kind: roomsensor.APIKey,
			Purpose: "Programs read your team's data with an API key: scripts, spreadsheets and other services.",
			list:    b.APIKeys, create: b.CreateAPIKey, rotate: b.RotateAPIKey, revoke: b.RevokeAPIKey,
		},
		{
			Path: "upload", Name: "upload credential", Plural: "Upload credentials", kind: roomsensor.IngestKey,
			Purpose: "Devices and gateways upload readings with an upload credential. It cannot read anything.",
			list:    b.TeamIngestKeys, create: b.CreateIngestKey, rotate: b.RotateIngestKey, revoke: b.RevokeIngestKey,
		},
	}
}

// keyKind returns the kind that the path names.
func (p *Pages) keyKind(v *page.Visit) (*keyKind, error) {
	kinds := p.keyKinds()
	at := slices.IndexFunc(kinds, func(k keyKind) bool { return k.Path == v.Echo.Param("kind") })
	if at < 0 {
		return nil, roomsensor.ErrNotFound
	}
	return &kinds[at], nil
}

// keyView is a key on a page.
type keyView struct {
	roomsensor.Key
	Kind        *keyKind
	Name        string // its label, or a word for none
	Valid       bool
	Badge, Word string // class and text of its status
}

// expiresSoon is the time before its expiration from which a key is marked.
const expiresSoon = 14 * 24 * time.Hour

func viewKey(kind *keyKind, key *roomsensor.Key, now time.Time) keyView {
	view := keyView{Key: *key, Kind: kind, Name: "No label"}
	if key.Label != nil {
		view.Name = *key.Label
	}
	switch {
	case key.RevokedAt != nil:
		view.Badge, view.Word = "off", "Revoked"
	case key.ExpiresAt != nil && !now.Before(*key.ExpiresAt):
		view.Badge, view.Word = "off", "Expired"
	case key.ExpiresAt != nil && key.ExpiresAt.Sub(now) < expiresSoon:
		view.Badge, view.Word, view.Valid = "warn", "Expires soon", true
	default:
		view.Badge, view.Word, view.Valid = "ok", "Active", true
	}
	return view
}

// maxEnded is how many revoked and expired keys of a kind the page shows.
const maxEnded = 50

// keyList is the keys of one kind, the newest first.
type keyList struct {
	Kind         *keyKind
	Valid, Ended []keyView
}

// List shows the keys of both kinds.
func (p *Pages) List(ctx context.Context, v *page.Visit) error {
	kinds := p.keyKinds()
	lists := make([]keyList, len(kinds))
	for i := range kinds {
		keys, err := kinds[i].list(ctx, v.Team.ID)
		if err != nil {
			return err
		}
		lists[i].Kind = &kinds[i]
		for j := range slices.Backward(keys) {
			view := viewKey(&kinds[i], &keys[j], v.Now)
			switch {
			case view.Valid:
				lists[i].Valid = append(lists[i].Valid, view)
			case len(lists[i].Ended) < maxEnded:
				lists[i].Ended = append(lists[i].Ended, view)
			}
		}
	}
	return v.Render("keys", lists)
}

// findKey returns the key that the path names, if it belongs to the team, and all keys of its kind.
func (p *Pages) findKey(ctx context.Context, v *page.Visit) (key keyView, all []roomsensor.Key, err error) {
	kind, err := p.keyKind(v)
	if err != nil {
		return key, nil, err
	}
	if all, err = kind.list(ctx, v.Team.ID); err != nil {
		return key, nil, err
	}
	for i := range all {
		if all[i].ID == v.Echo.Param("key_id") {
			return viewKey(kind, &all[i], v.Now), all, nil
		}
	}
	return key, nil, roomsensor.ErrNotFound
}
