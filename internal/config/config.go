package config

import (
	"cmp"
	"crypto/x509"
	"errors"
	"net"
	"os"
	"regexp"

	"github.com/rs/zerolog"
)

// API configures the processes that answer clients. The minimum of AuditKeep is that of audit_expire in schema/. A
// third of the minimum of CurrentMemory has room for the largest teams that have a snapshot: 10,000 devices take 3 MB.
type API struct {
	Database
	Standbys
	Site
	Log
	AccessLog
	Tracing
	Stop
	CORSOrigins   Origins  `help:"Origins of web pages, separated by commas, from which browsers may call the API." implied:"none" name:"cors-origins" placeholder:"ORIGIN,..." setting:""`
	CurrentMemory Size     `default:"64MiB" help:"Memory for the statistics of /devices/current, which it does not read again while they are unchanged: about 390 bytes for each device whose team asks." placeholder:"SIZE" setting:"" min:"32MiB"`
	AuditKeep     Duration `default:"400d" help:"How long entries of the audit log are kept; at least 30d." placeholder:"DURATION" setting:"" min:"30d"`
	OpsAddr       string   `default:"127.0.0.1:9080" help:"Address of health checks, metrics and profiles." placeholder:"HOST:PORT" setting:"" rule:"address"`
}

// Validate checks everything that can be checked without connecting.
func (c *API) Validate() error { return validate(c) }

// MarshalZerologObject logs the configuration without its secrets.
func (c *API) MarshalZerologObject(e *zerolog.Event) {
	inForce := *c
	inForce.PublicURL, inForce.DocsURL = c.Public(""), c.Docs("")
	logSettings(e.Bool("public_url_of_request", c.PublicURL == ""), &inForce)
}

// Ingest configures the processes that receive and store uploads.
type Ingest struct {
	Database
	Queue
	Stream
	Retention
	Uploads
	Rejects
	Maintenance
	Site
	Log
	AccessLog
	Tracing
	Stop
	IngestAddr string `default:"127.0.0.1:8081" help:"Address that the receiver listens on." placeholder:"HOST:PORT" setting:"" rule:"address"`
	OpsAddr    string `default:"127.0.0.1:9081" help:"Address of health checks and metrics." placeholder:"HOST:PORT" setting:"" rule:"address"`
	NoReceiver bool   `help:"Run the worker only: receive no uploads over HTTP." setting:""`
	NoWorker   bool   `help:"Run the receiver only: store nothing." setting:""`
}

// Validate checks everything that can be checked without connecting.
func (c *Ingest) Validate() error {
	if c.NoReceiver && c.NoWorker {
		return &ValueError{
			Flag:   "no-worker",
			Reason: "cannot be combined with --no-receiver (NO_RECEIVER): nothing would run. Omit one of them",
		}
	}
	return cmp.Or(validate(c), c.Stream.Validate(), c.validateRejects(&c.Retention))
}

// MarshalZerologObject logs the configuration without its secrets.
func (c *Ingest) MarshalZerologObject(e *zerolog.Event) {
	inForce := *c
	inForce.PublicURL, inForce.DocsURL, inForce.RejectsTeamMaxBytes = c.Public(""), c.Docs(""), c.TeamMaxBytes()
	logSettings(e, &inForce)
}

// Migration configures migrate up.
type Migration struct {
	Database
	Layout
	Roles
}

// Roles configures the database roles with which the processes log in.
type Roles struct {
	DatabaseRoles             string   `help:"Prefix of the database roles of the processes: with roomsensor, migrate up creates roomsensor_api, roomsensor_worker, roomsensor_receiver, roomsensor_dashboard and roomsensor_notify and gives each the rights that it needs. Set it in production." implied:"creates none" placeholder:"PREFIX" setting:"" rule:"role-prefix"`
	DatabaseAPIPassword       Password `help:"Password to set for the role of the API." implied:"unchanged" name:"database-api-password" placeholder:"PASSWORD" setting:""`
	DatabaseWorkerPassword    Password `help:"Password to set for the role of the workers." implied:"unchanged" placeholder:"PASSWORD" setting:""`
	DatabaseReceiverPassword  Password `help:"Password to set for the role of the receivers." implied:"unchanged" placeholder:"PASSWORD" setting:""`
	DatabaseDashboardPassword Password `help:"Password to set for the role of the dashboard." implied:"unchanged" placeholder:"PASSWORD" setting:""`
	DatabaseNotifyPassword    Password `help:"Password to set for the role that evaluates alerts and sends mails." implied:"unchanged" placeholder:"PASSWORD" setting:""`
}

var rolePrefix = regexp.MustCompile(`^[a-z][a-z0-9_]{0,39}$`)

var errRolePrefix = errors.New("must be up to 40 lowercase letters, digits and underscores that begin with a letter, " +
	"such as roomsensor")

func rolesPrefix(value string) error {
	if !rolePrefix.MatchString(value) {
		return errRolePrefix
	}
	return nil
}

// Validate checks the prefix of the roles.
func (c *Roles) Validate() error {
	if err := validate(c); err != nil {
		return err
	}
	passwords := c.DatabaseAPIPassword + c.DatabaseWorkerPassword + c.DatabaseReceiverPassword +
		c.DatabaseDashboardPassword + c.DatabaseNotifyPassword
	if c.DatabaseRoles == "" && passwords != "" {
		return &ValueError{Flag: "database-roles", Reason: "is missing: passwords without roles have no effect"}
	}
	return nil
}

// Database is the location of the tables.
type Database struct {
	DatabaseURL Secret `setting:"" help:"URL of the TimescaleDB database, postgres://user:password@host:5432/name." name:"database-url" placeholder:"URL" rule:"database-url"`
	PgBouncer   bool   `help:"The database URL leads to PgBouncer in transaction mode. Set it only then: queries are planned each time." name:"pgbouncer" setting:""`
}

// Validate checks the form of the URL.
func (c *Database) Validate() error { return validate(c) }

// Malformed returns the error of a database URL that only the driver can refuse. It does not repeat the error of the
// driver, which may contain the password.
func (c *Database) Malformed() error {
	return &ValueError{Flag: "database-url", Reason: errDatabaseURL.Error()}
}

// Standbys are the servers beside the primary that may serve reads.
type Standbys struct {
	ReadDatabaseURL Secret `help:"URL of streaming standbys of the database, one per host, for exports, pages of readings, aggregates, coverage, gaps and changes." implied:"none" name:"read-database-url" placeholder:"URL" setting:"" rule:"database-url"`
}

// Validate checks the form of the URL.
func (c *Standbys) Validate() error { return validate(c) }

// Malformed returns the error of a URL that only the driver can refuse, as Database.Malformed does.
func (c *Standbys) Malformed() error {
	return &ValueError{Flag: "read-database-url", Reason: errDatabaseURL.Error()}
}

// Queue is the location of the stream of uploads.
type Queue struct {
	NATSURL Secret `setting:"" help:"URL of NATS with JetStream, nats://host:4222, or tls://host:4222 to require TLS." name:"nats-url" placeholder:"URL" rule:"queue-url"`
	NATSCA  string `help:"File with the certificates of the CAs of NATS. Set it if a CA of your own signed the server's certificate." implied:"those of the system" name:"nats-ca" placeholder:"FILE" setting:"" rule:"certificates"`
}

// Validate checks the form of the URL and the file of the CAs.
func (c *Queue) Validate() error { return validate(c) }

// certificates checks that a file contains certificates.
func certificates(path string) error {
	if _, err := CertPool(path); err != nil {
		return errCertificates
	}
	return nil
}

// CertPool returns the certificates of a file; nil, which means those of the system, without a path.
func CertPool(path string) (*x509.CertPool, error) {
	if path == "" {
		return nil, nil //nolint:nilnil // nil is a valid pool.
	}
	text, err := os.ReadFile(path) //nolint:gosec // The operator chooses the file.
	if err != nil {
		return nil, err //nolint:wrapcheck // Its callers say what the file is for.
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, errCertificates
	}
	return pool, nil
}

// Malformed returns the error of a NATS URL that only the client can refuse.
func (c *Queue) Malformed() error {
	return &ValueError{Flag: "nats-url", Reason: errQueueURL.Error()}
}

// Stop configures how a process stops.
type Stop struct {
	DrainDelay Delay `default:"0s" help:"How long a stopping process goes on serving while /readyz is 503; set it to more than the interval at which your load balancer reads /readyz." placeholder:"DURATION" setting:""`
}

// Log configures the log.
type Log struct {
	LogLevel string `default:"info" setting:"" help:"Lowest level that is logged: trace, debug, info, warn or error." placeholder:"LEVEL" rule:"log-level"`
}

// AccessLog configures the log of the requests of clients.
type AccessLog struct {
	LogAccessSample int `default:"1" setting:"" help:"Log one of N successful requests that took less than 1 s. All others are always logged." placeholder:"N" positive:""`
}

var errLevel = errors.New("must be one of trace, debug, info, warn, error")

// Validate checks the name of the level.
func (c *Log) Validate() error { return validate(c) }

func logLevel(value string) error {
	if level, err := zerolog.ParseLevel(value); err != nil || level < zerolog.TraceLevel || level > zerolog.ErrorLevel {
		return errLevel
	}
	return nil
}

// Level returns the level for the logger; info for a level that Validate refuses.
func (c *Log) Level() zerolog.Level {
	level, err := zerolog.ParseLevel(c.LogLevel)
	if err != nil {
		return zerolog.InfoLevel
	}
	return level
}

// Ops is the ops address of a running process, for healthcheck.
type Ops struct {
	OpsAddr string `default:"127.0.0.1:9080" help:"Ops address of the process." placeholder:"HOST:PORT" setting:"" rule:"address"`
}

// Validate checks the form of the address.
func (c *Ops) Validate() error { return validate(c) }

// Local returns an address at which this machine reaches the process.
func (c *Ops) Local() string {
	host, port, err := net.SplitHostPort(c.OpsAddr)
	if err != nil {
		return c.OpsAddr
	}
	return net.JoinHostPort(localHost(host), port)
}

// localHost returns a host at which this machine reaches a listener on host, which may mean all addresses.
func localHost(host string) string {
	if ip := net.ParseIP(host); host == "" || (ip != nil && ip.IsUnspecified()) {
		return "localhost"
	}
	return host
}
