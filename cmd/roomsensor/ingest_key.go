package main

import (
	"context"

	"github.com/google/uuid"

	"roomsensor/internal/app"
	"roomsensor/internal/config"
)

type ingestKeyCmd struct {
	Create ingestKeyCreateCmd `cmd:"" help:"Make a credential that uploads for a team; it is shown once."`
	List   ingestKeyListCmd   `cmd:"" help:"List the credentials of a team, without their secrets."`
	Revoke ingestKeyRevokeCmd `cmd:"" help:"End a credential; within 5 seconds it is refused everywhere."`
}

type ingestKeyCreateCmd struct {
	config.Database
	Team  id    `help:"Id of the team." placeholder:"ID" required:""`
	Label *name `help:"What the credential is for." placeholder:"LABEL"`
}

// Run carries the command out.
func (c *ingestKeyCreateCmd) Run(ctx context.Context, t *terminal) error {
	return operate(ctx, t, c.Database, func(ctx context.Context, o *app.Operator) (app.NewIngestKey, error) {
		return o.CreateIngestKey(ctx, uuid.UUID(c.Team), c.Label.optional())
	})
}

type ingestKeyListCmd struct {
	config.Database
	Team id `help:"Id of the team." placeholder:"ID" required:""`
}

// Run carries the command out.
func (c *ingestKeyListCmd) Run(ctx context.Context, t *terminal) error {
	return operate(ctx, t, c.Database, func(ctx context.Context, o *app.Operator) (app.List[app.IngestKey], error) {
		return o.IngestKeys(ctx, uuid.UUID(c.Team))
	})
}

type ingestKeyRevokeCmd struct {
	config.Database
	KeyID keyID `arg:"" help:"Public id of the credential."`
}

// Run carries the command out.
func (c *ingestKeyRevokeCmd) Run(ctx context.Context, t *terminal) error {
	return operate(ctx, t, c.Database, func(ctx context.Context, o *app.Operator) (app.IngestKey, error) {
		return o.RevokeIngestKey(ctx, string(c.KeyID))
	})
}
