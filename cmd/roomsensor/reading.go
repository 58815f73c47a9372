package main

import (
	"context"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/admin"
	"roomsensor/internal/cli"
)

type readingCmd struct {
	Delete readingDeleteCmd `cmd:"" help:"Delete the wrong readings of a device in a period permanently."`
}

type readingDeleteCmd struct {
	ofDevice
	cli.Confirmation
	From   cli.Edge `help:"Start of the period: a UTC time or date. Readings whose bucket begins then are deleted." placeholder:"TIME" required:""`
	To     cli.Edge `help:"End of the period: a UTC time or date. Readings whose bucket begins then stay." placeholder:"TIME" required:""`
	Reason cli.Name `help:"Why, for the audit log." placeholder:"TEXT" required:""`
}

// Help returns the part of --help about how it deletes.
func (*readingDeleteCmd) Help() string {
	return `The command lists what it deletes and what changes with that, and asks before it does. The device, its ` +
		`assignments and its last arrival stay. It works in transactions of 35 days, each of which adds an entry to ` +
		`the audit log: run it again if it was interrupted, and it deletes the rest. Clients of the change feed learn ` +
		`of it with include=deletions. An upload that arrives afterwards is stored as always, also one of that ` +
		`period. To refuse those first, remove the unit at the start of the period (device remove-hardware --at) and ` +
		`install it again at its end (device replace-hardware --at).`
}

// Run deletes readings.
func (c *readingDeleteCmd) Run(ctx context.Context, t *cli.Terminal) error {
	window := admin.BucketsBetween(time.Time(c.From), time.Time(c.To))
	if window.Empty() {
		return cli.Usagef("--from and --to contain no bucket of 5 minutes. Give a --to that is later.")
	}
	return operateDevice(ctx, t, c.ofDevice, func(o *admin.Operator, device uuid.UUID) (any, error) {
		preview, err := o.PreviewReadings(ctx, device, window)
		if err != nil || preview.Readings == 0 {
			return preview.DeletedReadings, err
		}
		if err := t.ConfirmChange(ctx, c.Confirmation, "This deletes readings permanently:", preview); err != nil {
			return nil, err
		}
		return o.DeleteReadings(ctx, device, window, string(c.Reason))
	})
}
