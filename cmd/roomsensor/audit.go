package main

import (
	"context"

	"roomsensor/internal/admin"
	"roomsensor/internal/cli"
	"roomsensor/internal/roomsensor"
)

type auditCmd struct {
	List auditListCmd `cmd:"" help:"List who changed what, newest first."`
}

// maxAuditEntries is the maximum of one list, which is in memory.
const maxAuditEntries = 100_000

type auditListCmd struct {
	onDatabase
	Team   *cli.Name    `help:"Only changes of the team with this name or id. A deleted team has its id only." implied:"all" placeholder:"TEAM"`
	Since  *cli.Instant `help:"Only changes at this time or later." implied:"all" placeholder:"TIME"`
	Actor  cli.Name     `help:"Only changes of this email address, API key id, user of the operating system, or database user." implied:"all" placeholder:"ACTOR"`
	Object cli.Name     `help:"Only changes of the object with this id, of a device and its assignments, or of objects with this text in their name." implied:"all" placeholder:"ID"`
	Limit  int          `default:"1000" help:"Maximum number of entries, 1 to 100000." placeholder:"N"`
}

// Run lists the audit log.
func (c *auditListCmd) Run(ctx context.Context, t *cli.Terminal) error {
	if c.Limit < 1 || c.Limit > maxAuditEntries {
		return cli.Usagef("--limit must be a whole number from 1 to %d.", maxAuditEntries)
	}
	return operate(ctx, t, c.onDatabase, func(o *admin.Operator) (any, error) {
		team, err := o.FindTeamIfNamed(ctx, c.Team.Optional())
		if err != nil {
			return nil, err
		}
		return o.AuditLog(ctx, roomsensor.AuditQuery{
			TeamID: team, Since: c.Since.Optional(), Actor: string(c.Actor), Object: string(c.Object), Limit: c.Limit,
		})
	})
}
