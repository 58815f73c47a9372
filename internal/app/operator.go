package app

import (
	"context"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/config"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store"
)

// Operator carries out the operator's commands. What it refuses is a
// roomsensor.RefusedError, a sentence that says what to do.
type Operator struct {
	store *store.Store
	url   string
	now   func() time.Time
}

// OpenOperator prepares the connection to the database; Close it at the end.
func OpenOperator(ctx context.Context, cfg config.Database) (*Operator, error) {
	s, err := openStore(ctx, cfg, store.Operator)
	if err != nil {
		return nil, err
	}
	return &Operator{store: s, url: cfg.DatabaseURL, now: time.Now}, nil
}

// Close closes the connections.
func (o *Operator) Close() { o.store.Close() }

// openStore opens a store. Its only error is a URL that the driver does not take.
func openStore(ctx context.Context, cfg config.Database, role store.Role) (*store.Store, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	s, err := store.Open(ctx, cfg.DatabaseURL, role)
	if err != nil {
		return nil, cfg.Malformed()
	}
	return s, nil
}

// instant is the time that a command works at: now where none was given. Only
// what happened can be recorded, so the future is refused.
func (o *Operator) instant(flag string, at *time.Time) (time.Time, error) {
	now := o.current()
	if at == nil {
		return now, nil
	}
	if at.After(now) {
		return time.Time{}, refusef("--%s %s lies in the future. Give a time up to now, or leave it out for now.",
			flag, roomsensor.FormatTime(*at))
	}
	return *at, nil
}

// current is now as the database keeps it.
func (o *Operator) current() time.Time { return o.now().UTC().Truncate(time.Microsecond) }

// CreateTeam makes a team.
func (o *Operator) CreateTeam(ctx context.Context, name string) (Team, error) {
	t, err := o.store.CreateTeam(ctx, name)
	return viewTeam(&t), o.explain(ctx, err)
}

// Teams lists every team, the oldest first.
func (o *Operator) Teams(ctx context.Context) (List[Team], error) {
	teams, err := o.store.Teams(ctx)
	return listOf(teams, viewTeam), o.explain(ctx, err)
}

// KeyOptions are what an operator says of a key of the API to be.
type KeyOptions struct {
	TeamID    uuid.UUID
	Scope     roomsensor.Scope
	ExpiresAt *time.Time
	Label     *string
}

// CreateAPIKey makes a key of the API; its secret is in the result and nowhere else.
func (o *Operator) CreateAPIKey(ctx context.Context, k KeyOptions) (NewAPIKey, error) {
	id, text, sum := roomsensor.GenerateKey(roomsensor.APIKey)
	kept, err := o.store.CreateAPIKey(ctx, roomsensor.Key{
		ID: id, TeamID: k.TeamID, SecretSHA256: sum, Scope: k.Scope, Label: k.Label, ExpiresAt: k.ExpiresAt,
	})
	return NewAPIKey{
		KeyID: kept.ID, Key: text, Scopes: []string{string(kept.Scope)}, ExpiresAt: formatted(kept.ExpiresAt),
	}, o.explain(ctx, err)
}

// APIKeys lists the keys of a team, the oldest first.
func (o *Operator) APIKeys(ctx context.Context, teamID uuid.UUID) (List[APIKey], error) {
	keys, err := o.store.APIKeys(ctx, teamID)
	return listOf(keys, viewAPIKey), o.explain(ctx, err)
}

// RevokeAPIKey ends a key; doing it again changes nothing.
func (o *Operator) RevokeAPIKey(ctx context.Context, keyID string) (APIKey, error) {
	k, err := o.store.RevokeAPIKey(ctx, keyID)
	return viewAPIKey(&k), o.explain(ctx, err)
}

// CreateIngestKey makes a credential of the receiver; its secret is in the
// result and nowhere else.
func (o *Operator) CreateIngestKey(ctx context.Context, teamID uuid.UUID, label *string) (NewIngestKey, error) {
	id, text, sum := roomsensor.GenerateKey(roomsensor.IngestKey)
	kept, err := o.store.CreateIngestKey(ctx, roomsensor.Key{ID: id, TeamID: teamID, SecretSHA256: sum, Label: label})
	return NewIngestKey{KeyID: kept.ID, Key: text}, o.explain(ctx, err)
}

// IngestKeys lists the receiver's credentials of a team, the oldest first.
func (o *Operator) IngestKeys(ctx context.Context, teamID uuid.UUID) (List[IngestKey], error) {
	keys, err := o.store.TeamIngestKeys(ctx, teamID)
	return listOf(keys, viewIngestKey), o.explain(ctx, err)
}

// RevokeIngestKey ends a credential of the receiver; doing it again changes nothing.
func (o *Operator) RevokeIngestKey(ctx context.Context, keyID string) (IngestKey, error) {
	k, err := o.store.RevokeIngestKey(ctx, keyID)
	return viewIngestKey(&k), o.explain(ctx, err)
}
