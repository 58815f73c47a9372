package admin

import (
	"context"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/config"
	"roomsensor/internal/process"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store"
)

// Operator carries out the operator's commands on the database. It refuses a command with a process.RefusedError, a
// sentence that says what to do.
type Operator struct {
	store *store.Store
	url   string
	now   func() time.Time
}

// Open prepares the connection to the database. The caller must call Close.
func Open(ctx context.Context, cfg config.Database) (*Operator, error) {
	s, err := process.OpenStore(ctx, cfg, store.Operator)
	if err != nil {
		return nil, err
	}
	return New(cfg, s), nil
}

// New returns an Operator on an open store.
func New(cfg config.Database, s *store.Store) *Operator {
	return &Operator{store: s, url: string(cfg.DatabaseURL), now: time.Now}
}

// Close closes the connections.
func (o *Operator) Close() { o.store.Close() }

// effectiveTime returns the time at which a change takes effect: *at, or now if at is nil. It refuses a time in the
// future. flag is the name of the flag that gave the time.
func (o *Operator) effectiveTime(flag string, at *time.Time) (time.Time, error) {
	now := o.timestamp()
	if at == nil {
		return now, nil
	}
	if at.After(now) {
		return time.Time{}, process.Refusef("--%s %s is in the future. Give a time up to now, or omit the flag for now.",
			flag, roomsensor.FormatTime(*at))
	}
	return *at, nil
}

// timestamp is now in the precision of the database, 1 µs.
func (o *Operator) timestamp() time.Time { return o.now().UTC().Truncate(time.Microsecond) }

// CreateTeam creates a team.
func (o *Operator) CreateTeam(ctx context.Context, name string) (Team, error) {
	team, err := o.store.CreateTeam(ctx, name)
	if err != nil {
		return Team{}, o.explain(ctx, err)
	}
	return viewTeam(&team), nil
}

// Teams lists all teams, oldest first.
func (o *Operator) Teams(ctx context.Context) (List[Team], error) {
	teams, err := o.store.Teams(ctx)
	return listOf(teams, viewTeam), o.explain(ctx, err)
}

// KeyOptions describe a new API key.
type KeyOptions struct {
	TeamID    uuid.UUID
	Scope     roomsensor.Scope
	ExpiresAt *time.Time // nil never expires
	Label     *string
}

// CreateAPIKey creates an API key. Only its result contains the secret; the database stores a hash.
func (o *Operator) CreateAPIKey(ctx context.Context, k KeyOptions) (NewAPIKey, error) {
	id, text, sum := roomsensor.GenerateKey(roomsensor.APIKey)
	key, err := o.store.CreateAPIKey(ctx, roomsensor.Key{
		ID: id, TeamID: k.TeamID, SecretSHA256: sum, Scope: k.Scope, Label: k.Label, ExpiresAt: k.ExpiresAt,
	})
	if err != nil {
		return NewAPIKey{}, o.explain(ctx, err)
	}
	return NewAPIKey{
		KeyID: key.ID, Key: text, Scopes: []string{string(key.Scope)}, ExpiresAt: formatTime(key.ExpiresAt),
	}, nil
}

// APIKeys lists the API keys of a team, oldest first.
func (o *Operator) APIKeys(ctx context.Context, teamID uuid.UUID) (List[APIKey], error) {
	keys, err := o.store.APIKeys(ctx, teamID)
	return listOf(keys, viewAPIKey), o.explain(ctx, err)
}

// RevokeAPIKey revokes an API key. Revoking it again changes nothing.
func (o *Operator) RevokeAPIKey(ctx context.Context, keyID string) (APIKey, error) {
	key, err := o.store.RevokeAPIKey(ctx, keyID)
	if err != nil {
		return APIKey{}, o.explain(ctx, err)
	}
	return viewAPIKey(&key), nil
}

// CreateIngestKey creates a credential for uploads to the receiver. Only its result contains the secret.
func (o *Operator) CreateIngestKey(ctx context.Context, teamID uuid.UUID, label *string) (NewIngestKey, error) {
	id, text, sum := roomsensor.GenerateKey(roomsensor.IngestKey)
	key, err := o.store.CreateIngestKey(ctx, roomsensor.Key{ID: id, TeamID: teamID, SecretSHA256: sum, Label: label})
	if err != nil {
		return NewIngestKey{}, o.explain(ctx, err)
	}
	return NewIngestKey{KeyID: key.ID, Key: text}, nil
}

// IngestKeys lists the ingest keys of a team, oldest first.
func (o *Operator) IngestKeys(ctx context.Context, teamID uuid.UUID) (List[IngestKey], error) {
	keys, err := o.store.TeamIngestKeys(ctx, teamID)
	return listOf(keys, viewIngestKey), o.explain(ctx, err)
}

// RevokeIngestKey revokes an ingest key. Revoking it again changes nothing.
func (o *Operator) RevokeIngestKey(ctx context.Context, keyID string) (IngestKey, error) {
	key, err := o.store.RevokeIngestKey(ctx, keyID)
	if err != nil {
		return IngestKey{}, o.explain(ctx, err)
	}
	return viewIngestKey(&key), nil
}
