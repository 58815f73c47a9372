package main

import (
	"context"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/admin"
	"roomsensor/internal/admin/archive"
	"roomsensor/internal/cli"
	"roomsensor/internal/config"
)

type readingCmd struct {
	Delete  readingDeleteCmd  `cmd:"" help:"Delete the wrong readings of a device in a period permanently."`
	Archive readingArchiveCmd `cmd:"" help:"Write the readings of past months as Parquet files into a directory or an object store."`
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

type readingArchiveCmd struct {
	onDatabase
	config.ObjectStore
	To        string          `help:"Directory, or s3://BUCKET/PREFIX." placeholder:"LOCATION" required:""`
	OlderThan config.Duration `default:"35d" help:"How long a month must have ended; longer than devices buffer readings." placeholder:"DURATION"`
	Team      *cli.Name       `help:"Name or id of the team." implied:"all teams" placeholder:"TEAM"`
	Deletions bool            `help:"Also replace files that have readings which the database does not have any more."`
}

// Help returns the part of --help about the files.
func (*readingArchiveCmd) Help() string {
	return `The location gets one file per team and calendar month (UTC), and index.parquet, which lists them. A month ` +
		`that has not changed since it was written is skipped, and one with late readings is written again. If the ` +
		`database does not have readings of a file any more, because a retention deleted them, the file is kept. ` +
		`Nothing is deleted from the database.`
}

// Run writes an archive.
func (c *readingArchiveCmd) Run(ctx context.Context, t *cli.Terminal) error {
	files, err := archive.Open(c.To, &c.ObjectStore)
	if err != nil {
		return err
	}
	progress := t.NewProgress("archive")
	return operate(ctx, t, c.onDatabase, func(o *admin.Operator) (any, error) {
		defer progress.End()
		return o.Archive(ctx, files, c.Team.Optional(), time.Duration(c.OlderThan), archive.Options{
			Deletions: c.Deletions,
			Progress:  func(text string) { progress.Update(func() string { return text }) },
		})
	})
}
