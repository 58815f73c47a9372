package main

import (
	"context"

	"github.com/google/uuid"

	"roomsensor/internal/app"
	"roomsensor/internal/config"
	"roomsensor/internal/roomsensor"
)

type keyCmd struct {
	Create keyCreateCmd `cmd:"" help:"Make a key; it is shown once."`
	List   keyListCmd   `cmd:"" help:"List the keys of a team, without their secrets."`
	Revoke keyRevokeCmd `cmd:"" help:"End a key; within 5 seconds it is refused everywhere."`
}

type keyCreateCmd struct {
	config.Database
	Team      id       `help:"Id of the team." placeholder:"ID" required:""`
	Scope     string   `default:"read" enum:"read,read_write" help:"What the key allows: read or read_write."`
	ExpiresAt *instant `help:"When the key ends by itself; never by default." placeholder:"TIME"`
	Label     *name    `help:"What the key is for." placeholder:"LABEL"`
}

// Run carries the command out.
func (c *keyCreateCmd) Run(ctx context.Context, t *terminal) error {
	return operate(ctx, t, c.Database, func(ctx context.Context, o *app.Operator) (app.NewAPIKey, error) {
		return o.CreateAPIKey(ctx, app.KeyOptions{
			TeamID: uuid.UUID(c.Team), Scope: roomsensor.Scope(c.Scope),
			ExpiresAt: c.ExpiresAt.optional(), Label: c.Label.optional(),
		})
	})
}

type keyListCmd struct {
	config.Database
	Team id `help:"Id of the team." placeholder:"ID" required:""`
}

// Run carries the command out.
func (c *keyListCmd) Run(ctx context.Context, t *terminal) error {
	return operate(ctx, t, c.Database, func(ctx context.Context, o *app.Operator) (app.List[app.APIKey], error) {
		return o.APIKeys(ctx, uuid.UUID(c.Team))
	})
}

type keyRevokeCmd struct {
	config.Database
	KeyID keyID `arg:"" help:"Public id of the key."`
}

// Run carries the command out.
func (c *keyRevokeCmd) Run(ctx context.Context, t *terminal) error {
	return operate(ctx, t, c.Database, func(ctx context.Context, o *app.Operator) (app.APIKey, error) {
		return o.RevokeAPIKey(ctx, string(c.KeyID))
	})
}
