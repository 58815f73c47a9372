package main

import (
	"context"
	"fmt"
	"os"

	"roomsensor/internal/app"
	"roomsensor/internal/config"
)

type uploadCmd struct {
	config.Queue
	config.Stream
	File string `arg:"" default:"-" help:"JSON Lines of uploads; - is the standard input." optional:""`
}

// Run carries the command out.
func (c *uploadCmd) Run(ctx context.Context, t *terminal) error {
	in := t.stdin
	if c.File != "-" {
		file, err := os.Open(c.File)
		if err != nil {
			return fmt.Errorf("reading uploads: %w", err)
		}
		defer func() { _ = file.Close() }()
		in = file
	}
	receipts := func(receipt app.Receipt) error { return printJSON(t.stdout, receipt) }
	return app.Upload(ctx, c.Queue, c.Stream, in, receipts)
}
