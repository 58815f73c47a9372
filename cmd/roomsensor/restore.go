package main

import (
	"cmp"
	"context"

	"roomsensor/internal/admin/doctor"
	"roomsensor/internal/cli"
	"roomsensor/internal/config"
)

type restoreCmd struct {
	Check restoreCheckCmd `cmd:"" help:"Check a restored database before the processes start: owner, rights, moment, and whether the stream has all uploads since then."`
}

type restoreCheckCmd struct {
	onDatabase
	config.Queue
	To *cli.Instant `help:"Moment to which the database was restored." implied:"not checked" placeholder:"TIME"`
}

// Run prints the findings, and fails if something is wrong.
func (c *restoreCheckCmd) Run(ctx context.Context, t *cli.Terminal) error {
	diagnosis, err := doctor.CheckRestore(ctx, c.Database, c.Queue, c.To.Optional())
	if err != nil {
		return err
	}
	return cmp.Or(t.Print(c.Format, diagnosis), diagnosis.Refusal())
}
