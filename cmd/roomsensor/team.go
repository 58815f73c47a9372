package main

import (
	"context"

	"github.com/google/uuid"

	"roomsensor/internal/admin"
	"roomsensor/internal/config"
	"roomsensor/internal/roomsensor"
)

type teamCmd struct {
	Create teamCreateCmd `cmd:"" help:"Create a team."`
	List   teamListCmd   `cmd:"" help:"List all teams."`
}

type teamCreateCmd struct {
	config.Database
	Name name `help:"Name of the team." placeholder:"NAME" required:""`
}

// Run creates a team.
func (c *teamCreateCmd) Run(ctx context.Context, t *terminal) error {
	return t.operate(ctx, c.Database, func(o *admin.Operator) (any, error) {
		return o.CreateTeam(ctx, string(c.Name))
	})
}

type teamListCmd struct{ config.Database }

// Run lists all teams.
func (c *teamListCmd) Run(ctx context.Context, t *terminal) error {
	return t.operate(ctx, c.Database, func(o *admin.Operator) (any, error) { return o.Teams(ctx) })
}

// ofTeam are the flags of a command for one team.
type ofTeam struct {
	config.Database
	Team id `help:"Id of the team." placeholder:"ID" required:""`
}

type keyCmd struct {
	Create keyCreateCmd `cmd:"" help:"Create an API key. Its secret is shown once."`
	List   keyListCmd   `cmd:"" help:"List the API keys of a team, without their secrets."`
	Revoke keyRevokeCmd `cmd:"" help:"Revoke an API key. All replicas refuse it within 5 seconds."`
}

type keyCreateCmd struct {
	ofTeam
	Scope     string   `default:"read" enum:"read,read_write" help:"Permission: read or read_write."`
	ExpiresAt *instant `help:"Expiration time." implied:"never" placeholder:"TIME"`
	Label     *name    `help:"Purpose of the key." placeholder:"LABEL"`
}

// Run creates an API key.
func (c *keyCreateCmd) Run(ctx context.Context, t *terminal) error {
	return t.operate(ctx, c.Database, func(o *admin.Operator) (any, error) {
		return o.CreateAPIKey(ctx, admin.KeyOptions{
			TeamID: uuid.UUID(c.Team), Scope: roomsensor.Scope(c.Scope),
			ExpiresAt: c.ExpiresAt.optional(), Label: c.Label.optional(),
		})
	})
}

type keyListCmd struct{ ofTeam }

// Run lists the API keys of a team.
func (c *keyListCmd) Run(ctx context.Context, t *terminal) error {
	return t.operate(ctx, c.Database, func(o *admin.Operator) (any, error) { return o.APIKeys(ctx, uuid.UUID(c.Team)) })
}

type keyRevokeCmd struct {
	config.Database
	KeyID keyID `arg:"" help:"Public id of the key."`
}

// Run revokes an API key.
func (c *keyRevokeCmd) Run(ctx context.Context, t *terminal) error {
	return t.operate(ctx, c.Database, func(o *admin.Operator) (any, error) { return o.RevokeAPIKey(ctx, string(c.KeyID)) })
}

type ingestKeyCmd struct {
	Create ingestKeyCreateCmd `cmd:"" help:"Create an ingest key for a team. Its secret is shown once."`
	List   ingestKeyListCmd   `cmd:"" help:"List the ingest keys of a team, without their secrets."`
	Revoke ingestKeyRevokeCmd `cmd:"" help:"Revoke an ingest key. All receivers refuse it within 5 seconds."`
}

type ingestKeyCreateCmd struct {
	ofTeam
	Label *name `help:"Purpose of the key." placeholder:"LABEL"`
}

// Run creates an ingest key.
func (c *ingestKeyCreateCmd) Run(ctx context.Context, t *terminal) error {
	return t.operate(ctx, c.Database, func(o *admin.Operator) (any, error) {
		return o.CreateIngestKey(ctx, uuid.UUID(c.Team), c.Label.optional())
	})
}

type ingestKeyListCmd struct{ ofTeam }

// Run lists the ingest keys of a team.
func (c *ingestKeyListCmd) Run(ctx context.Context, t *terminal) error {
	return t.operate(ctx, c.Database, func(o *admin.Operator) (any, error) { return o.IngestKeys(ctx, uuid.UUID(c.Team)) })
}

type ingestKeyRevokeCmd struct {
	config.Database
	KeyID keyID `arg:"" help:"Public id of the key."`
}

// Run revokes an ingest key.
func (c *ingestKeyRevokeCmd) Run(ctx context.Context, t *terminal) error {
	return t.operate(ctx, c.Database, func(o *admin.Operator) (any, error) {
		return o.RevokeIngestKey(ctx, string(c.KeyID))
	})
}
