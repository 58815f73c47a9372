package main

import (
	"context"
	"fmt"
	"os"

	"roomsensor/internal/admin"
	"roomsensor/internal/cli"
	"roomsensor/internal/config"
)

type uploadCmd struct {
	config.Queue
	config.Stream
	File string `arg:"" default:"-" help:"JSON Lines of uploads; - is standard input." optional:""`
}

// Run publishes uploads and prints a receipt for each line.
func (c *uploadCmd) Run(ctx context.Context, t *cli.Terminal) error {
	in := t.Stdin
	if c.File != "-" {
		file, err := os.Open(c.File)
		if err != nil {
			return fmt.Errorf("reading uploads: %w", err)
		}
		defer func() { _ = file.Close() }()
		in = file
	}
	receipts := func(receipt admin.Receipt) error { return cli.PrintLine(t.Stdout, receipt) }
	return admin.Upload(ctx, c.Queue, c.Stream, in, receipts)
}

type streamCmd struct {
	Status  streamStatusCmd  `cmd:"" help:"Show how much the stream holds, how far back it reaches, and what waits in it."`
	Replay  streamReplayCmd  `cmd:"" help:"Process the stream again, after a restore of the database."`
	Update  streamUpdateCmd  `cmd:"" help:"Raise the size and the copies of the stream, and correct settings that would lose uploads; creates a missing one."`
	Confirm streamConfirmCmd `cmd:"" help:"Continue with another stream after the loss of the one before; creates a missing one."`
	Skip    streamSkipCmd    `cmd:"" help:"Move a blocking message to the rejects."`
}

type streamStatusCmd struct {
	onDatabase
	config.Queue
	config.Retention
}

// Run prints the state of the stream.
func (c *streamStatusCmd) Run(ctx context.Context, t *cli.Terminal) error {
	return operate(ctx, t, c.onDatabase, func(o *admin.Operator) (any, error) {
		return o.StreamStatus(ctx, c.Queue, config.Defaults[config.Stream](), c.Retention)
	})
}

type streamReplayCmd struct {
	config.Queue
	config.Stream
	cli.Format
	Since *cli.Instant `help:"Only messages that arrived at this time or later." implied:"all" placeholder:"TIME"`
}

// Run makes the workers process the stream again.
func (c *streamReplayCmd) Run(ctx context.Context, t *cli.Terminal) error {
	replay, err := admin.ReplayStream(ctx, c.Queue, c.Stream, c.Since.Optional())
	if err != nil {
		return err
	}
	return t.Print(c.Format, replay)
}

type streamUpdateCmd struct {
	config.Queue
	config.Stream
	cli.Format
}

// Run changes the settings of the stream and prints them.
func (c *streamUpdateCmd) Run(ctx context.Context, t *cli.Terminal) error {
	settings, err := admin.UpdateStream(ctx, c.Queue, c.Stream)
	if err != nil {
		return err
	}
	return t.Print(c.Format, settings)
}

type streamConfirmCmd struct {
	onDatabase
	config.Queue
	config.Stream
}

// Run records the stream and prints it.
func (c *streamConfirmCmd) Run(ctx context.Context, t *cli.Terminal) error {
	return operate(ctx, t, c.onDatabase, func(o *admin.Operator) (any, error) {
		return o.ConfirmStream(ctx, c.Queue, c.Stream)
	})
}

type streamSkipCmd struct {
	onDatabase
	config.Queue
	config.Stream
	Sequence uint64 `arg:"" help:"Sequence of the message in the stream, as stream_sequence in the log of the worker."`
}

// Run sets a message of the stream aside and prints its reject.
func (c *streamSkipCmd) Run(ctx context.Context, t *cli.Terminal) error {
	return operate(ctx, t, c.onDatabase, func(o *admin.Operator) (any, error) {
		return o.SkipUpload(ctx, c.Queue, c.Stream, c.Sequence)
	})
}
