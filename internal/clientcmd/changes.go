package clientcmd

import (
	"bufio"
	"context"
	"fmt"
	"iter"
	"time"

	"roomsensor/client"
	"roomsensor/internal/cli"
	"roomsensor/internal/config"
	"roomsensor/internal/table"
)

type getChangesCmd struct {
	config.Client
	listed
	tagged
	referenced
	Since     feedStart `help:"Where to begin: a UTC time or date, at most 30 days ago, or the cursor that an earlier run printed." implied:"now" placeholder:"TIME"`
	Deletions bool      `help:"Print ranges of readings that an operator deleted too: objects with from, to and deleted_at, before the readings that follow them. A cursor is of one kind, with or without them."`
	Follow    bool      `help:"Wait for more changes, until Ctrl-C. While the service does not answer, wait too."`
	Output    string    `default:"auto" enum:"auto,table,json" help:"Format: table, or json for one object per line; auto is a table on a terminal without --follow, and json elsewhere." placeholder:"FORMAT"`
}

// feedStart is a time, or a position in the change feed.
type feedStart struct {
	since    time.Time
	position client.Position
}

// shortestCursor is less than the length of any cursor, and more than that of a time.
const shortestCursor = 40

// UnmarshalText parses a time or a date, and takes a longer text for a cursor.
func (v *feedStart) UnmarshalText(text []byte) error {
	if len(text) >= shortestCursor {
		v.position = client.Position(text)
		return nil
	}
	var at cli.Edge
	if err := at.UnmarshalText(text); err != nil {
		return fmt.Errorf("%w; nor is it a cursor", err)
	}
	v.since = time.Time(at)
	return nil
}

// Help returns the part of --help about the cursor.
func (*getChangesCmd) Help() string {
	return `The command prints every reading that was inserted or changed since then, whenever it was measured, and ` +
		`then, on stderr, the cursor with which to continue: "changes: continue with --since CURSOR". A reading is ` +
		`repeated only if it changes again. To keep an exact copy, use 'roomsensor sync'.`
}

// Run prints changes.
func (c *getChangesCmd) Run(ctx context.Context, t *cli.Terminal) error {
	asTable := c.Output == "table" || c.Output == "auto" && t.Shows && !c.Follow
	if c.Follow && asTable {
		return cli.Usagef("--follow prints one object per line. Omit --output table.")
	}
	if c.Deletions && asTable {
		return cli.Usagef("--deletions prints one object per line. Use --output json.")
	}
	query := client.ChangeQuery{
		Since: c.Since.since, ExternalRef: c.ExternalRef, Metadata: c.Metadata, Deletions: c.Deletions,
		UntilCaughtUp: !c.Follow, GiveUp: !c.Follow,
	}
	return get(ctx, t, c.Client, func(api *client.Client) (err error) {
		if query.Devices, err = c.findDevices(ctx, api); err != nil {
			return err
		}
		show := printChanges
		if asTable {
			show = tabulateChanges
		}
		position, err := show(t, api.Follow(ctx, query, c.Since.position))
		if position != "" {
			_, _ = fmt.Fprintf(t.Stderr, "changes: continue with --since %s\n", position)
		}
		if c.Follow && ctx.Err() != nil {
			err = nil // Ctrl-C is how a person ends a command that follows.
		}
		return err
	})
}

// printChanges prints one object per line, page by page, and returns the position after what it has printed.
func printChanges(t *cli.Terminal, feed iter.Seq2[client.Changes, error]) (printed client.Position, err error) {
	out := bufio.NewWriter(t.Stdout)
	for page, err := range feed {
		if err != nil {
			return printed, err
		}
		for i := range page.Deleted {
			if err := cli.PrintLine(out, &page.Deleted[i]); err != nil {
				return printed, err
			}
		}
		for i := range page.Readings {
			if err := cli.PrintLine(out, &page.Readings[i]); err != nil {
				return printed, err
			}
		}
		if err := out.Flush(); err != nil {
			return printed, fmt.Errorf("writing the result: %w", err)
		}
		printed = page.Position
	}
	return printed, nil
}

// tabulateChanges prints one table, and returns the position after it.
func tabulateChanges(t *cli.Terminal, feed iter.Seq2[client.Changes, error]) (end client.Position, err error) {
	var list cli.List[client.DeviceReading]
	for page, err := range feed {
		if err != nil {
			return "", err
		}
		list.Data, end = append(list.Data, page.Readings...), page.Position
	}
	return end, table.Write(t.Stdout, list)
}
