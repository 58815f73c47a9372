package clientcmd

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"roomsensor/client/localcopy"
	"roomsensor/client/localcopy/parquet"
	"roomsensor/client/localcopy/sqlite"
	"roomsensor/internal/cli"
	"roomsensor/internal/config"
	"roomsensor/internal/process"
)

// Sync is the command that keeps a local copy of the readings of a team.
type Sync struct {
	config.Client
	Target   string    `arg:"" help:"SQLite file (NAME.db, NAME.sqlite or sqlite:PATH), or directory for Parquet files (DIR/ or parquet:DIR)."`
	From     *cli.Edge `help:"Start of a new copy. It has no reading from before, also none that arrives late." implied:"all" placeholder:"TIME"`
	Once     bool      `help:"End when the copy has caught up, instead of following the changes."`
	Parallel int       `default:"4" help:"Number of simultaneous requests of the first load, 1 to 8." placeholder:"N"`
}

// Help returns the part of --help about what it does.
func (*Sync) Help() string {
	return `The first run loads all readings of the team, later runs continue. The copy follows the change feed: late ` +
		`readings and corrections arrive too. Changes and the position after them are stored in one step, so that the ` +
		`copy is exact whenever the command ends, also by a power failure: run it again to continue.

The copy also has the devices and assignments, which are replaced when it has caught up, and then every hour.

SQLite has the tables readings, devices, assignments and sync_state, and a transaction for each page of changes. A ` +
		`Parquet directory has current/readings/YYYY-MM.parquet, current/devices.parquet and ` +
		`current/assignments.parquet; every 5 minutes, changed months are replaced all at once.

DuckDB reads both, and this program cannot write DuckDB's own files, because its engine needs C:
  duckdb -c "ATTACH 'readings.db' AS rooms (TYPE sqlite); SELECT count(*) FROM rooms.readings"
  duckdb -c "SELECT count(*) FROM 'copy/current/readings/*.parquet'"`
}

// Run keeps a local copy.
func (c *Sync) Run(ctx context.Context, t *cli.Terminal) error {
	if c.Parallel < 1 || c.Parallel > maxParallel {
		return cli.Usagef("--parallel must be a whole number from 1 to %d.", maxParallel)
	}
	open, err := c.target()
	if err != nil {
		return err
	}
	api, shut, err := connect(t, c.Client)
	if err != nil {
		return err
	}
	defer shut()
	store, err := open(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }()
	show := &syncProgress{
		Progress: t.NewProgress("sync"),
		load:     &exportProgress{Progress: t.NewProgress("sync"), began: time.Now()},
	}
	options := localcopy.Options{Once: c.Once, Parallel: c.Parallel, Progress: show.update, Load: show.load.update}
	if c.From != nil {
		options.From = time.Time(*c.From)
	}
	result, err := localcopy.Run(ctx, api, store, options)
	show.End()
	show.load.End()
	if err != nil {
		switch {
		case ctx.Err() == nil:
			return explain(ctx, c.Client, err)
		case c.Once || result.Phase != localcopy.Following:
			return process.RefusedError("Interrupted. Run the same command again to continue.")
		}
	}
	return t.Print(cli.Format{Output: "auto"}, result) // Ctrl-C is how a person ends a command that follows.
}

// target returns a function that opens the store.
func (c *Sync) target() (open func(ctx context.Context) (localcopy.Store, error), err error) {
	kind, path, _ := strings.Cut(c.Target, ":")
	if !slices.Contains([]string{"sqlite", "parquet", "duckdb"}, kind) { // A colon may be part of a name.
		path = c.Target
		info, failed := os.Stat(path)
		switch ext := strings.ToLower(filepath.Ext(path)); {
		case strings.HasSuffix(path, "/"), failed == nil && info.IsDir():
			kind = "parquet"
		case ext == ".db", ext == ".sqlite", ext == ".sqlite3":
			kind = "sqlite"
		default:
			kind = strings.TrimPrefix(ext, ".")
		}
	}
	switch {
	case path == "":
	case kind == "sqlite":
		return func(ctx context.Context) (localcopy.Store, error) { return sqlite.Open(ctx, path) }, nil
	case kind == "parquet":
		return func(context.Context) (localcopy.Store, error) { return parquet.Open(path) }, nil
	case kind == "duckdb":
		return nil, cli.Usagef("This program cannot write DuckDB's files, because DuckDB's engine needs C. Give a SQLite " +
			"file or a directory for Parquet, which DuckDB reads; 'roomsensor sync --help' has the commands.")
	}
	return nil, cli.Usagef("%q names no target. Give a SQLite file (readings.db) or a directory for Parquet (readings/).",
		c.Target)
}

// syncProgress shows the progress of a copy.
type syncProgress struct {
	*cli.Progress
	load   *exportProgress
	caught bool
}

// update shows a status.
func (p *syncProgress) update(s localcopy.Status) {
	p.load.End()
	if s.Note != "" {
		p.Line(s.Note)
		return
	}
	if s.Phase == localcopy.Following && s.CaughtUp && !p.caught {
		p.caught = true
		p.Line(fmt.Sprintf("the copy is up to date; %d changes", s.Changes))
	}
	p.Update(func() string { return syncText(s) })
}

func syncText(s localcopy.Status) string {
	switch {
	case s.Phase == localcopy.Importing:
		return fmt.Sprintf("storing month %d of %d", s.FilesDone+1, s.Files)
	case s.CaughtUp:
		return fmt.Sprintf("up to date, %d changes", s.Changes)
	}
	return fmt.Sprintf("catching up, %d changes", s.Changes)
}
