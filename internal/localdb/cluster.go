package localdb

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// clusterConfig is the file that this package writes before every start; PostgreSQL's own file includes it.
const clusterConfig = "roomsensor.conf"

// remnantsTimeout is what the processes of a killed server get to notice that it is gone.
const remnantsTimeout = 30 * time.Second

var errRemnants = errors.New("processes of a crashed server still use the data")

// startCluster starts the server of a data directory with the programs of an installation. A nil state asks for new
// data.
func (s starter) startCluster(ctx context.Context, in *installation, made *state) (*state, error) {
	as, err := accountFor(s.dir.file("pgdata"))
	if err != nil {
		return nil, err
	}
	for _, dir := range []string{s.dir.path, in.bin} {
		if err := as.reach(ctx, dir); err != nil {
			return nil, err
		}
	}
	c := cluster{starter: s, in: in, as: as, data: s.dir.file("pgdata")}
	if made == nil && exists(c.data) {
		return nil, fmt.Errorf("%s holds data, but the file server.json with its password is gone: bring it back, or"+
			" remove the directory to begin anew", s.dir.path)
	}
	if made == nil || !exists(c.data) {
		if made, err = c.init(ctx); err != nil {
			return nil, err
		}
	}
	if err := c.start(ctx, made); err != nil {
		return nil, err
	}
	return made, nil
}

// cluster is the data of a PostgreSQL on this machine and who serves it.
type cluster struct {
	starter
	in   *installation
	as   *account
	data string
}

// init makes new data beside its place and moves it there, so that a crash leaves nothing half made.
func (c cluster) init(ctx context.Context) (*state, error) {
	st := &state{Bin: c.in.bin, How: c.in.how, Password: newPassword()}
	next, secret := c.dir.file("pgdata.new"), c.dir.file("pgdata.password")
	if err := os.RemoveAll(next); err != nil {
		return nil, fmt.Errorf("making a database cluster: %w", err)
	}
	defer func() { _ = os.Remove(secret) }()
	if err := errors.Join(
		os.Mkdir(next, 0o700), os.WriteFile(secret, []byte(st.Password), 0o600), c.as.own(next, secret),
	); err != nil {
		return nil, fmt.Errorf("making a database cluster: %w", err)
	}
	c.progress.say("making a database cluster in %s", c.dir.path)
	initdb := c.command("making a database cluster", "initdb", "--pgdata="+next, "--username="+superuser,
		"--pwfile="+secret, "--auth=scram-sha-256", "--encoding=UTF8", "--locale=C")
	if c.settings()["fsync"] == "off" {
		initdb.argv = append(initdb.argv, "--no-sync")
	}
	if _, err := initdb.run(ctx, c.progress); err != nil {
		return nil, err
	}
	if err := appendLine(filepath.Join(next, "postgresql.conf"), "include '"+clusterConfig+"'"); err != nil {
		return nil, err
	}
	if err := c.dir.save(st); err != nil {
		return nil, err
	}
	return st, os.Rename(next, c.data) //nolint:wrapcheck // It names both paths.
}

// start brings the server up.
func (c cluster) start(ctx context.Context, st *state) error {
	if err := errors.Join(c.dir.disownPostmaster(), c.configure(st)); err != nil {
		return err
	}
	err := c.launch(ctx)
	for deadline := time.Now().Add(remnantsTimeout); errors.Is(err, errRemnants) && time.Now().Before(deadline); {
		if err := pause(ctx, 5*pollInterval); err != nil {
			return fmt.Errorf("waiting for the processes of a crashed server to end: %w", err)
		}
		err = c.launch(ctx)
	}
	if err != nil {
		return err
	}
	return await(ctx, st.urlOf("postgres"), startTimeout)
}

// launch runs pg_ctl, which waits until the server is ready. The server gets a session and streams of its own.
func (c cluster) launch(ctx context.Context) error {
	logFile, err := c.newLog()
	if err != nil {
		return err
	}
	_, err = c.command("starting PostgreSQL", "pg_ctl", "start", "--pgdata="+c.data, "--log="+logFile, "--wait",
		"--timeout="+strconv.Itoa(int(startTimeout.Seconds())), "--silent").run(ctx, c.progress)
	if err == nil {
		return nil
	}
	said, _ := os.ReadFile(logFile) //nolint:gosec // A file of ours. What cannot be read cannot explain anything.
	if strings.Contains(string(said), "pre-existing shared memory block") {
		return errRemnants
	}
	output := &tail{}
	_, _ = output.Write(said)
	return fmt.Errorf("%w%s", err, output.indented())
}

func (c cluster) command(step, program string, args ...string) command {
	return command{
		step: step, argv: append([]string{filepath.Join(c.in.bin, program)}, args...),
		// A directory that the account can be in; the caller's may be closed to it.
		dir: "/", as: c.as, limit: startTimeout + time.Minute,
	}
}

// configure writes the settings, with the port of the last time or, if somebody took it meanwhile, a new one.
func (c cluster) configure(st *state) error {
	port, err := freePort(st.Port)
	if err != nil {
		return err
	}
	st.Port, st.Bin, st.How = port, c.in.bin, c.in.how
	settings := c.settings()
	settings["port"] = strconv.Itoa(port)
	settings["listen_addresses"] = "127.0.0.1"
	// The path of a socket is limited to some 100 bytes, and nobody needs one.
	settings["unix_socket_directories"] = ""
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		fmt.Fprintf(&b, "%s = '%s'\n", name, strings.ReplaceAll(settings[name], "'", "''"))
	}
	path := filepath.Join(c.data, clusterConfig)
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		return fmt.Errorf("writing the server's settings: %w", err)
	}
	return errors.Join(c.as.own(path), c.dir.save(st))
}

// newLog returns an empty log file; the one of the last run is kept as server.log.old.
func (c cluster) newLog() (string, error) {
	path := c.dir.file("server.log")
	if err := os.Rename(path, path+".old"); err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("making the server's log: %w", err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		return "", fmt.Errorf("making the server's log: %w", err)
	}
	return path, c.as.own(path)
}

// freePort returns the port wanted, if nobody listens on it, else any that is free.
func freePort(wanted int) (int, error) {
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: wanted})
	if err != nil && wanted != 0 {
		return freePort(0)
	}
	if err != nil {
		return 0, fmt.Errorf("looking for a free port: %w", err)
	}
	defer func() { _ = l.Close() }()
	addr, err := netip.ParseAddrPort(l.Addr().String())
	if err != nil {
		return 0, fmt.Errorf("looking for a free port: %w", err)
	}
	return int(addr.Port()), nil
}

func appendLine(path, line string) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0) //nolint:gosec // A file of ours.
	if err != nil {
		return fmt.Errorf("adding to the server's settings: %w", err)
	}
	_, err = f.WriteString("\n" + line + "\n")
	return errors.Join(err, f.Close())
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
