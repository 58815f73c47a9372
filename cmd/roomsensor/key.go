package main

import (
	"context"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/admin"
	"roomsensor/internal/cli"
	"roomsensor/internal/config"
	"roomsensor/internal/roomsensor"
)

type keyCmd struct {
	Create keyCreateCmd `cmd:"" help:"Create an API key. Its secret is shown once."`
	List   keyListCmd   `cmd:"" help:"List the API keys of a team, without their secrets."`
	Rotate keyRotateCmd `cmd:"" help:"Replace an API key: create another one, and let the old one expire after an overlap."`
	Revoke keyRevokeCmd `cmd:"" help:"Revoke an API key. All replicas refuse it within 5 seconds."`
}

type keyCreateCmd struct {
	ofTeam
	Scope     string       `default:"read" enum:"read,read_write" help:"Permission: read or read_write." placeholder:"SCOPE"`
	ExpiresAt *cli.Instant `help:"Expiration time." implied:"never" placeholder:"TIME"`
	Label     *cli.Name    `help:"Purpose of the key." implied:"none" placeholder:"LABEL"`
}

// Run creates an API key.
func (c *keyCreateCmd) Run(ctx context.Context, t *cli.Terminal) error {
	return operateTeam(ctx, t, c.onDatabase, c.Team, func(o *admin.Operator, team uuid.UUID) (any, error) {
		return o.CreateAPIKey(ctx, roomsensor.Key{
			TeamID: team, Scope: roomsensor.Scope(c.Scope),
			ExpiresAt: c.ExpiresAt.Optional(), Label: c.Label.Optional(),
		})
	})
}

type keyListCmd struct{ ofTeam }

// Run lists the API keys of a team.
func (c *keyListCmd) Run(ctx context.Context, t *cli.Terminal) error {
	return operateTeam(ctx, t, c.onDatabase, c.Team, func(o *admin.Operator, team uuid.UUID) (any, error) {
		return o.APIKeys(ctx, team)
	})
}

// ofKey are the flags of a command for one key.
type ofKey struct {
	onDatabase
	KeyID keyID `arg:"" help:"Public id of the key."`
}

// rotation are the flags of a command that replaces a key.
type rotation struct {
	ofKey
	Overlap config.Duration `default:"24h" help:"How long the old key stays valid, at least 5s." placeholder:"DURATION"`
}

// Validate checks that every process knows the expiry before it comes (decision 24 l). The parser calls it.
func (c *rotation) Validate() error {
	if time.Duration(c.Overlap) < roomsensor.RevokeDelay {
		return cli.Usagef("--overlap must be at least %s. To end the key now, create another one and revoke this one",
			roomsensor.RevokeDelay)
	}
	return nil
}

type keyRotateCmd struct{ rotation }

// Run replaces an API key.
func (c *keyRotateCmd) Run(ctx context.Context, t *cli.Terminal) error {
	return operate(ctx, t, c.onDatabase, func(o *admin.Operator) (any, error) {
		return o.RotateAPIKey(ctx, string(c.KeyID), time.Duration(c.Overlap))
	})
}

type keyRevokeCmd struct{ ofKey }

// Run revokes an API key.
func (c *keyRevokeCmd) Run(ctx context.Context, t *cli.Terminal) error {
	return operate(ctx, t, c.onDatabase, func(o *admin.Operator) (any, error) {
		return o.RevokeAPIKey(ctx, string(c.KeyID))
	})
}

type ingestKeyCmd struct {
	Create ingestKeyCreateCmd `cmd:"" help:"Create an ingest key for a team. Its secret is shown once."`
	List   ingestKeyListCmd   `cmd:"" help:"List the ingest keys of a team, without their secrets."`
	Rotate ingestKeyRotateCmd `cmd:"" help:"Replace an ingest key: create another one, and let the old one expire after an overlap."`
	Revoke ingestKeyRevokeCmd `cmd:"" help:"Revoke an ingest key. All receivers refuse it within 5 seconds."`
}

type ingestKeyCreateCmd struct {
	ofTeam
	Source    *cli.Name    `help:"Id or name of the source at which alone the key is valid." implied:"uploads" placeholder:"SOURCE"`
	ExpiresAt *cli.Instant `help:"Expiration time." implied:"never" placeholder:"TIME"`
	Label     *cli.Name    `help:"Purpose of the key." implied:"none" placeholder:"LABEL"`
}

// Run creates an ingest key.
func (c *ingestKeyCreateCmd) Run(ctx context.Context, t *cli.Terminal) error {
	return operateTeam(ctx, t, c.onDatabase, c.Team, func(o *admin.Operator, team uuid.UUID) (any, error) {
		key := roomsensor.Key{TeamID: team, ExpiresAt: c.ExpiresAt.Optional(), Label: c.Label.Optional()}
		if c.Source != nil {
			s, err := o.FindSource(ctx, new(team.String()), string(*c.Source))
			if err != nil {
				return nil, err
			}
			key.Source = &roomsensor.KeySource{ID: s.ID}
		}
		return o.CreateIngestKey(ctx, key)
	})
}

type ingestKeyListCmd struct{ ofTeam }

// Run lists the ingest keys of a team.
func (c *ingestKeyListCmd) Run(ctx context.Context, t *cli.Terminal) error {
	return operateTeam(ctx, t, c.onDatabase, c.Team, func(o *admin.Operator, team uuid.UUID) (any, error) {
		return o.IngestKeys(ctx, team)
	})
}

type ingestKeyRotateCmd struct{ rotation }

// Run replaces an ingest key.
func (c *ingestKeyRotateCmd) Run(ctx context.Context, t *cli.Terminal) error {
	return operate(ctx, t, c.onDatabase, func(o *admin.Operator) (any, error) {
		return o.RotateIngestKey(ctx, string(c.KeyID), time.Duration(c.Overlap))
	})
}

type ingestKeyRevokeCmd struct{ ofKey }

// Run revokes an ingest key.
func (c *ingestKeyRevokeCmd) Run(ctx context.Context, t *cli.Terminal) error {
	return operate(ctx, t, c.onDatabase, func(o *admin.Operator) (any, error) {
		return o.RevokeIngestKey(ctx, string(c.KeyID))
	})
}
