package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/rs/zerolog"

	"roomsensor/internal/config"
	"roomsensor/internal/localdb"
	"roomsensor/internal/natsserver"
	"roomsensor/internal/queue"
)

// DemoOptions say how a demo runs.
type DemoOptions struct {
	// DatabaseURL is the database to use; empty finds or starts one.
	DatabaseURL string
	// DataDir keeps everything; DefaultDemoDir when empty.
	DataDir string
	// Reset begins anew. It deletes nothing in a database that was given.
	Reset bool
	// History is how far back the readings reach at the first start.
	History time.Duration
	// The addresses to listen on, and the port of NATS on 127.0.0.1. Where one
	// is taken, the next free port is used.
	APIAddr, APIOpsAddr, IngestAddr, IngestOpsAddr string
	NATSPort                                       int
	// Every is the time between two uploads of a live device.
	Every time.Duration
	// Out is where the demo tells what it does.
	Out     io.Writer
	Version string
}

// DefaultDemoDir is where a demo keeps its data.
func DefaultDemoDir() (string, error) {
	base, err := localdb.Base()
	if err != nil {
		return "", err
	}
	return base + "/demo", nil
}

// Demo runs the whole service in one process, with a team whose simulated
// devices have a history, until ctx ends. Run again, it goes on where it
// stopped.
func Demo(ctx context.Context, o DemoOptions) error {
	if o.DataDir == "" {
		var err error
		if o.DataDir, err = DefaultDemoDir(); err != nil {
			return err
		}
	}
	d := &demo{options: o, dir: demoDir{o.DataDir}, began: time.Now(), listeners: map[string]net.Listener{}}
	unlock, err := d.dir.open()
	if err != nil {
		return err
	}
	defer unlock()
	log, err := os.Create(d.dir.log())
	if err != nil {
		return fmt.Errorf("making the demo's log: %w", err)
	}
	d.log = zerolog.New(config.MaskingWriter(log)).Level(zerolog.InfoLevel).With().Timestamp().Logger()
	err = errors.Join(supervise(ctx, d.log, d.start), log.Close())
	if err == nil {
		d.say("Stopped. Run the demo again to go on with the same data.")
	}
	return err
}

// demo is one run of Demo.
type demo struct {
	options   DemoOptions
	dir       demoDir
	log       zerolog.Logger
	began     time.Time
	listeners map[string]net.Listener

	state    *demoState
	database config.Database
	edition  string
	nats     string
	queue    *queue.Queue
	operator *Operator
	api      config.API
	ingest   config.Ingest
}

// start brings everything up in order; what it started is closed in reverse.
func (d *demo) start(ctx context.Context, l *lifecycle) error {
	for _, step := range []func(context.Context, *lifecycle) error{
		d.remember, d.startDatabase, d.migrate, d.startQueue, d.makeTeam,
		d.startAPI, d.startIngest, d.fillHistory, d.present, d.startDevices,
	} {
		if err := step(ctx, l); err != nil {
			return err
		}
	}
	l.push("the terminal", func(context.Context) error {
		d.say("\nStopping ...")
		return nil
	})
	return nil
}

func (d *demo) say(format string, args ...any) {
	_, _ = fmt.Fprintf(d.options.Out, format+"\n", args...) // A closed terminal stops nothing.
}

// remember reads what an earlier run left, or clears the place for the first.
func (d *demo) remember(ctx context.Context, _ *lifecycle) (err error) {
	if d.options.Reset {
		if err := d.dir.forget(); err != nil {
			return err
		}
	}
	if d.state, err = d.dir.load(); err != nil || d.state != nil {
		return err
	}
	// A first start that was interrupted, or a reset, leaves nothing behind.
	if err := localdb.Remove(ctx, d.dir.database()); err != nil {
		return err
	}
	if err := os.RemoveAll(d.dir.queue()); err != nil {
		return fmt.Errorf("removing the demo's queue: %w", err)
	}
	return nil
}

func (d *demo) startDatabase(ctx context.Context, l *lifecycle) error {
	d.say("Looking for a TimescaleDB ...")
	if d.options.DatabaseURL == "" {
		l.push("the database server", func(ctx context.Context) error {
			return localdb.Stop(ctx, d.dir.database())
		})
	}
	server, err := localdb.Start(ctx, localdb.Options{
		URL: d.options.DatabaseURL, DataDir: d.dir.database(), Progress: d.options.Out,
	})
	if err != nil {
		return err
	}
	d.database = config.Database{DatabaseURL: server.URL}
	return nil
}

func (d *demo) migrate(ctx context.Context, l *lifecycle) (err error) {
	var migrations Migrations
	err = patiently(ctx, func() (err error) {
		migrations, err = MigrateUp(ctx, config.Migration{Database: d.database, Layout: config.DefaultLayout()})
		return err
	})
	if err != nil {
		return err
	}
	d.edition = fmt.Sprintf("TimescaleDB %s, %s edition", deref(migrations.TimescaleDB), deref(migrations.Edition))
	d.say("%s, migrated.", d.edition)
	if d.operator, err = OpenOperator(ctx, d.database); err != nil {
		return err
	}
	l.push("the operator's connections", closing(d.operator.Close))
	return nil
}

func deref(text *string) string {
	if text == nil {
		return "unknown"
	}
	return *text
}

// demoStream is enough for the history several times over.
const demoStream = "1GiB"

func (d *demo) startQueue(ctx context.Context, l *lifecycle) error {
	port, err := freePort(ctx, d.options.NATSPort)
	if err != nil {
		return err
	}
	server, err := natsserver.Start(natsserver.Options{StoreDir: d.dir.queue(), Port: port, Log: d.log})
	if err != nil {
		return err
	}
	l.push("the queue", closing(server.Shutdown))
	d.nats = server.URL
	d.ingest = config.Ingest{
		Database: d.database,
		Queue:    config.Queue{NATSURL: server.URL},
		Stream:   config.Stream{StreamReplicas: 1, StreamMaxBytes: demoStream, StreamKeep: "7d"},
		Log:      config.Log{LogLevel: zerolog.LevelInfoValue},
	}
	q, conn, err := connectQueue(d.ingest.Queue, d.ingest.Stream, "roomsensor demo", d.log)
	if err != nil {
		return err
	}
	l.push("the connection to the queue", closing(conn.Close))
	d.queue = q
	return patiently(ctx, func() error { return declare(ctx, q) })
}
