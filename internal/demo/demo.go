package demo

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/rs/zerolog"

	"roomsensor/client"
	"roomsensor/internal/admin"
	"roomsensor/internal/config"
	devnats "roomsensor/internal/dev/nats"
	"roomsensor/internal/dev/postgres"
	"roomsensor/internal/process"
	"roomsensor/internal/queue"
	"roomsensor/internal/service"
	"roomsensor/internal/store"
	"roomsensor/schema"
)

// maxStreamBytes is several times the size of the default history.
const maxStreamBytes = 1 * config.GiB

// Options configure a demo.
type Options struct {
	// DatabaseURL is the database to use; empty finds or starts one.
	DatabaseURL string
	// DataDir stores everything; empty is demo beside the directory of `roomsensor-dev localdb`.
	DataDir string
	// Reset starts over with a new team. It deletes nothing in the database of DatabaseURL.
	Reset bool
	// History is how far back the readings go at the first start.
	History time.Duration
	// The addresses to listen on, and the port of NATS on 127.0.0.1. If one is in use, the next free port is used.
	APIAddr, APIOpsAddr, IngestAddr, IngestOpsAddr string
	DashboardAddr, DashboardOpsAddr, NotifyOpsAddr string
	NATSPort                                       int
	// Every is the interval between two uploads of a device.
	Every time.Duration
	// Confirm asks the person at the terminal before system packages are installed; nil if nobody can be asked.
	Confirm func(ctx context.Context, question string) (yes bool, err error)
	// Out is where the demo reports what it does.
	Out     io.Writer
	Version string
}

// Run runs the whole service in one process, with a team of simulated devices that have a history, until ctx ends. A
// second run continues with the data of the first.
func Run(ctx context.Context, o Options) error {
	if o.DataDir == "" {
		var err error
		if o.DataDir, err = postgres.Dir("demo"); err != nil {
			return err
		}
	}
	d := &demo{options: o, dir: dataDir{o.DataDir}, began: time.Now(), listeners: map[string]net.Listener{}}
	unlock, err := d.dir.open()
	if err != nil {
		return err
	}
	defer unlock()
	file, err := createLog(d.dir.log(), maxLogBytes)
	if err != nil {
		return err
	}
	log := zerolog.New(config.MaskingWriter(file)).Level(zerolog.InfoLevel).With().Timestamp().Logger()
	err = errors.Join(process.Run(ctx, process.Options{Log: log, Version: o.Version}, d.start), file.Close())
	if err == nil {
		d.printf("Stopped. Run the demo again to continue with the same data.")
	}
	return err
}

// demo is one run of the demo.
type demo struct {
	*process.Process
	options   Options
	dir       dataDir
	began     time.Time
	listeners map[string]net.Listener // opened for a process that has not started yet, by address

	state     *state
	created   bool // this run created the team
	database  config.Database
	roles     schema.Roles // of the processes; empty on a server that is not the demo's own
	store     *store.Store
	operator  *admin.Operator
	queue     *queue.Queue
	receiver  *client.Receiver // of the running process, with the team's key
	api       config.API
	ingest    config.Ingest
	dashboard config.Dashboard
	notify    config.Notify
}

// start starts everything in order; the closers run in reverse.
func (d *demo) start(ctx context.Context, p *process.Process) error {
	d.Process = p
	for _, step := range []func(context.Context) error{
		d.loadState, d.startDatabase, d.migrate, d.configure, d.startQueue, d.createTeam,
		d.startProcesses, d.fillHistory, d.sendRejected, d.startNotify, d.printOverview, d.startDevices,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	d.OnClose("the terminal", func(context.Context) error {
		d.printf("\nStopping ...")
		return nil
	})
	return nil
}

func (d *demo) printf(format string, args ...any) {
	_, _ = fmt.Fprintf(d.options.Out, format+"\n", args...) // A closed terminal does not stop the demo.
}

// loadState reads the state of an earlier run. Without one it deletes the leftovers of an interrupted first start.
func (d *demo) loadState(ctx context.Context) (err error) {
	if d.options.Reset {
		if err := d.dir.removeState(); err != nil {
			return err
		}
	}
	if d.state, err = d.dir.load(); err != nil || d.state != nil {
		return err
	}
	if err := postgres.Remove(ctx, d.dir.database()); err != nil {
		return err
	}
	if err := os.RemoveAll(d.dir.queue()); err != nil {
		return fmt.Errorf("removing the queue of the demo: %w", err)
	}
	return nil
}

func (d *demo) startDatabase(ctx context.Context) error {
	d.printf("Looking for TimescaleDB ...")
	if d.options.DatabaseURL == "" {
		d.OnClose("the database server", func(ctx context.Context) error {
			return postgres.Stop(ctx, d.dir.database())
		})
	}
	server, err := postgres.Start(ctx, postgres.Options{
		URL: d.options.DatabaseURL, DataDir: d.dir.database(), Progress: d.options.Out, Confirm: d.options.Confirm,
	})
	if err != nil {
		return err
	}
	d.database = config.Database{DatabaseURL: config.Secret(server.URL)}
	if d.options.DatabaseURL == "" {
		d.roles = schema.Roles{Prefix: "roomsensor", Passwords: map[schema.Role]string{
			schema.RoleAPI: rand.Text(), schema.RoleWorker: rand.Text(), schema.RoleReceiver: rand.Text(),
			schema.RoleDashboard: rand.Text(), schema.RoleNotify: rand.Text(),
		}}
	}
	return nil
}

// databaseAs returns the database as a process logs in.
func (d *demo) databaseAs(role schema.Role) (config.Database, error) {
	if d.roles.Prefix == "" {
		return d.database, nil
	}
	url, err := d.roles.URL(string(d.database.DatabaseURL), role)
	return config.Database{DatabaseURL: config.Secret(url)}, err
}

func (d *demo) migrate(ctx context.Context) (err error) {
	var migrations admin.Migrations
	err = process.Patiently(ctx, func() (err error) {
		cfg := config.Migration{Database: d.database, Layout: config.Defaults[config.Layout](), Roles: config.Roles{
			DatabaseRoles:             d.roles.Prefix,
			DatabaseAPIPassword:       config.Password(d.roles.Passwords[schema.RoleAPI]),
			DatabaseWorkerPassword:    config.Password(d.roles.Passwords[schema.RoleWorker]),
			DatabaseReceiverPassword:  config.Password(d.roles.Passwords[schema.RoleReceiver]),
			DatabaseDashboardPassword: config.Password(d.roles.Passwords[schema.RoleDashboard]),
			DatabaseNotifyPassword:    config.Password(d.roles.Passwords[schema.RoleNotify]),
		}}
		migrations, err = admin.MigrateUp(ctx, cfg)
		return err
	})
	if err != nil {
		return err
	}
	d.printf("TimescaleDB %s, %s edition, migrated.", orUnknown(migrations.TimescaleDB), orUnknown(migrations.Edition))
	if d.store, err = process.OpenStore(ctx, d.database, store.Operator); err != nil {
		return err
	}
	d.operator = admin.New(d.database, d.store)
	d.OnClose("the operator's connections", process.Closing(d.store.Close))
	return nil
}

func orUnknown(text *string) string {
	if text == nil {
		return "unknown"
	}
	return *text
}

func (d *demo) startQueue(ctx context.Context) error {
	free, err := d.listenNear(ctx, "NATS", net.JoinHostPort("127.0.0.1", strconv.Itoa(d.options.NATSPort)))
	if err != nil {
		return err
	}
	port := free.Addr().(*net.TCPAddr).Port //nolint:forcetypeassert // It listened on TCP.
	if err := free.Close(); err != nil {
		return fmt.Errorf("looking for a free port: %w", err)
	}
	server, err := devnats.Start(devnats.Options{StoreDir: d.dir.queue(), Port: port, Log: d.Log})
	if err != nil {
		return err
	}
	d.OnClose("the queue", process.Closing(server.Shutdown))
	d.ingest.NATSURL = config.Secret(server.URL)
	q, conn, err := process.ConnectQueue(d.ingest.Queue, d.ingest.Stream, "roomsensor-dev demo", d.Log)
	if err != nil {
		return err
	}
	d.OnClose("the connection to the queue", process.Closing(conn.Close))
	d.queue = q
	if err := process.Patiently(ctx, func() error { return process.DeclareStream(ctx, q) }); err != nil {
		return err
	}
	if err := q.Check(ctx); err != nil {
		return err
	}
	// The queue belongs to the demo. After a reset, the database may still record the stream of an earlier demo.
	return d.store.ConfirmStream(ctx, queue.StreamName, q.Created())
}

// startProcesses starts the API, ingest with the receiver and a worker, and the dashboard, as complete processes inside
// the demo.
func (d *demo) startProcesses(ctx context.Context) (err error) {
	for _, p := range []struct {
		name     string
		role     schema.Role
		database *config.Database
		run      func(context.Context, process.Options) error
	}{
		{"api", schema.RoleAPI, &d.api.Database, func(ctx context.Context, o process.Options) error {
			return service.RunAPI(ctx, d.api, o)
		}},
		{"ingest", schema.RoleWorker, &d.ingest.Database, func(ctx context.Context, o process.Options) error {
			return service.RunIngest(ctx, d.ingest, o)
		}},
		{"dashboard", schema.RoleDashboard, &d.dashboard.Database, func(ctx context.Context, o process.Options) error {
			return service.RunDashboard(ctx, d.dashboard, o)
		}},
	} {
		if *p.database, err = d.databaseAs(p.role); err != nil {
			return err
		}
		if err := d.startProcess(ctx, p.name, p.run); err != nil {
			return err
		}
	}
	d.receiver, err = client.NewReceiver("http://"+d.ingest.IngestAddr, d.state.IngestKey)
	return err
}

// startNotify starts the process that evaluates alerts, once there is something to evaluate. It sends no mails.
func (d *demo) startNotify(ctx context.Context) (err error) {
	if d.notify.Database, err = d.databaseAs(schema.RoleNotify); err != nil {
		return err
	}
	return d.startProcess(ctx, "notify", func(ctx context.Context, o process.Options) error {
		return service.RunNotify(ctx, d.notify, o)
	})
}

// startProcess starts a process and waits until it is ready.
func (d *demo) startProcess(
	ctx context.Context, name string, run func(context.Context, process.Options) error,
) error {
	ready := make(chan struct{})
	d.Background(name, func(ctx context.Context) error { //nolint:contextcheck // Its closer ends it.
		return run(ctx, process.Options{
			Log:     d.Log.With().Str("process", name).Logger(),
			Version: d.options.Version,
			Listen:  d.listener,
			Ready:   func() { close(ready) },
		})
	})
	select {
	case <-ready:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
