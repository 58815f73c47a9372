package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"roomsensor/internal/dev/command"
	"roomsensor/internal/retry"
)

// clusterConfig is the configuration file that this package writes before every start; postgresql.conf includes it.
const clusterConfig = "roomsensor.conf"

// orphansTimeout is the limit for the processes of a killed server to end after start has killed them. A process that
// waits for a lock of the server does not notice that the server is gone, so that without the kill it would keep the
// data in use forever.
const orphansTimeout = 30 * time.Second

var errOrphans = errors.New("processes of a crashed server still use the data")

// startCluster starts the server of a data directory with the programs of an installation. If created is nil, it
// creates the data first.
func (s starter) startCluster(ctx context.Context, in *installation, created *state) (*state, error) {
	as, err := command.AccountFor(s.dir.file("pgdata"))
	if err != nil {
		return nil, err
	}
	for _, dir := range []string{s.dir.path, in.bin} {
		if err := as.Reach(ctx, dir); err != nil {
			return nil, err
		}
	}
	c := cluster{starter: s, in: in, as: as, data: s.dir.file("pgdata")}
	if created == nil && command.Exists(c.data) {
		return nil, fmt.Errorf("%s holds data, but the file server.json with its password is gone: restore it, or"+
			" remove the directory to start with an empty database", s.dir.path)
	}
	if created == nil || !command.Exists(c.data) {
		if created, err = c.init(ctx); err != nil {
			return nil, err
		}
	}
	if err := c.start(ctx, created); err != nil {
		return nil, err
	}
	return created, nil
}

// cluster is a PostgreSQL server on this machine: its data, its programs and its user.
type cluster struct {
	starter
	in   *installation
	as   *command.Account
	data string
}

// init creates the data under another name and renames it, so that a crash leaves nothing incomplete.
func (c cluster) init(ctx context.Context) (*state, error) {
	st := &state{Bin: c.in.bin, How: c.in.how, Password: newPassword()}
	next, secret := c.dir.file("pgdata.new"), c.dir.file("pgdata.password")
	if err := os.RemoveAll(next); err != nil {
		return nil, fmt.Errorf("making a database cluster: %w", err)
	}
	defer func() { _ = os.Remove(secret) }()
	if err := errors.Join(
		os.Mkdir(next, 0o700), os.WriteFile(secret, []byte(st.Password), 0o600), c.as.Own(next, secret),
	); err != nil {
		return nil, fmt.Errorf("making a database cluster: %w", err)
	}
	c.progress.Log("making a database cluster in %s", c.dir.path)
	initdb := c.command("making a database cluster", "initdb", "--pgdata="+next, "--username="+superuser,
		"--pwfile="+secret, "--auth=scram-sha-256", "--encoding=UTF8", "--locale=C", "--data-checksums")
	if c.settings()["fsync"] == "off" {
		initdb.Argv = append(initdb.Argv, "--no-sync")
	}
	if _, err := initdb.Run(ctx, c.progress); err != nil {
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

// start starts the server. After a crash it kills processes of the old server that still run.
func (c cluster) start(ctx context.Context, st *state) error {
	if err := errors.Join(c.dir.disownPostmaster(), c.configure(st)); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, orphansTimeout)
	defer cancel()
	err := retry.Until(limited, 5*pollInterval, func(context.Context) (bool, error) {
		err := c.launch(ctx)
		if !errors.Is(err, errOrphans) {
			return true, err
		}
		return false, c.killOrphans()
	})
	if limited.Err() != nil && ctx.Err() == nil {
		return errOrphans
	}
	if err != nil {
		return err
	}
	return await(ctx, st.urlOf("postgres"), startTimeout)
}

// killOrphans kills the processes that a server without a postmaster left behind: all processes of PostgreSQL work in
// the directory of their data. It needs /proc, and does nothing without it.
func (c cluster) killOrphans() error {
	data, err := filepath.EvalSymlinks(c.data)
	if err != nil {
		return fmt.Errorf("finding the processes of a crashed server: %w", err)
	}
	links, _ := filepath.Glob("/proc/[0-9]*/cwd") // Only a bad pattern is an error.
	for _, link := range links {
		dir, err := os.Readlink(link)
		if err != nil || dir != data {
			continue // The process ended, or is another one.
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(link)))
		if err != nil {
			return fmt.Errorf("finding the processes of a crashed server: %w", err)
		}
		c.progress.Log("killing process %d, which a crashed server left behind", pid)
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("killing process %d of a crashed server: %w", pid, err)
		}
	}
	return nil
}

// launch runs pg_ctl, which waits until the server is ready. The server runs in its own session and does not hold the
// caller's streams open.
func (c cluster) launch(ctx context.Context) error {
	logFile, err := c.newLog()
	if err != nil {
		return err
	}
	_, err = c.command("starting PostgreSQL", "pg_ctl", "start", "--pgdata="+c.data, "--log="+logFile, "--wait",
		"--timeout="+strconv.Itoa(int(startTimeout.Seconds())), "--silent").Run(ctx, c.progress)
	if err == nil {
		return nil
	}
	output, _ := os.ReadFile(logFile) //nolint:gosec // A file of this package. Without it, the error lacks details.
	if strings.Contains(string(output), "pre-existing shared memory block") {
		return errOrphans
	}
	return fmt.Errorf("%w%s", err, command.Indented(output))
}

func (c cluster) command(step, program string, args ...string) command.Command {
	return command.Command{
		Step: step, Argv: append([]string{filepath.Join(c.in.bin, program)}, args...),
		// The account may not be able to enter the caller's directory.
		Dir: "/", As: c.as, Limit: startTimeout + time.Minute,
	}
}

// configure writes the settings, with the last port, or a new one if another process uses that now.
func (c cluster) configure(st *state) error {
	port, err := freePort(st.Port)
	if err != nil {
		return err
	}
	st.Port, st.Bin, st.How = port, c.in.bin, c.in.how
	settings := c.settings()
	settings["port"] = strconv.Itoa(port)
	settings["listen_addresses"] = "127.0.0.1"
	// The path of a socket is limited to about 100 bytes, and no client uses one.
	settings["unix_socket_directories"] = ""
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		fmt.Fprintf(&b, "%s = '%s'\n", name, strings.ReplaceAll(settings[name], "'", "''"))
	}
	path := filepath.Join(c.data, clusterConfig)
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		return fmt.Errorf("writing the server's settings: %w", err)
	}
	return errors.Join(c.as.Own(path), c.dir.save(st))
}

// newLog creates an empty log file and keeps the last one as server.log.old.
func (c cluster) newLog() (string, error) {
	path := c.dir.file("server.log")
	if err := os.Rename(path, path+".old"); err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("making the server's log: %w", err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		return "", fmt.Errorf("making the server's log: %w", err)
	}
	return path, c.as.Own(path)
}

// freePort returns the wanted port if it is free, otherwise another free one.
func freePort(wanted int) (int, error) {
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: wanted})
	if err != nil && wanted != 0 {
		return freePort(0)
	}
	if err != nil {
		return 0, fmt.Errorf("looking for a free port: %w", err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port, nil //nolint:forcetypeassert // It listened on TCP.
}

func appendLine(path, line string) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0) //nolint:gosec // A file of this package.
	if err != nil {
		return fmt.Errorf("adding to the server's settings: %w", err)
	}
	_, err = f.WriteString("\n" + line + "\n")
	return errors.Join(err, f.Close())
}

// stopTimeout is the time that a server gets to write its data and stop.
const stopTimeout = time.Minute

// postmaster returns the process that serves the data directory. The file postmaster.pid alone does not prove that it
// runs: the file stays after a crash, and another process may have that number now.
func (d *dataDir) postmaster() (pid int, ok bool) {
	data, err := os.ReadFile(d.pidFile())
	if err != nil {
		return 0, false
	}
	first, _, _ := strings.Cut(string(data), "\n")
	pid, err = strconv.Atoi(strings.TrimSpace(first))
	if err != nil || pid <= 0 {
		return 0, false
	}
	return pid, strings.Contains(commandLine(pid), d.file("pgdata"))
}

func (d *dataDir) pidFile() string { return filepath.Join(d.file("pgdata"), "postmaster.pid") }

// noProcess is a process number that does not exist.
const noProcess = math.MaxInt32

// disownPostmaster replaces the process number in the postmaster.pid of a crashed server, because PostgreSQL would take
// another process that has the number now for a running server. It keeps the file: through it, PostgreSQL notices
// processes of the crashed server that still write.
func (d *dataDir) disownPostmaster() error {
	data, err := os.ReadFile(d.pidFile())
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err == nil {
		_, rest, _ := strings.Cut(string(data), "\n")
		//nolint:gosec // A file of this package.
		err = os.WriteFile(d.pidFile(), []byte(strconv.Itoa(noProcess)+"\n"+rest), 0o600)
	}
	if err != nil {
		return fmt.Errorf("cleaning up after a crashed server: %w", err)
	}
	return nil
}

// commandLine returns the arguments of a process, empty when there is none.
func commandLine(pid int) string {
	if command.Exists("/proc/self/cmdline") {
		line, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
		if err != nil {
			return ""
		}
		return string(bytes.ReplaceAll(line, []byte{0}, []byte{' '}))
	}
	//nolint:gosec,noctx // The argument is a number, and ps ends by itself.
	line, err := exec.Command("ps", "-ww", "-o", "args=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return ""
	}
	return string(line)
}

// stopPostmaster stops the server like `pg_ctl stop -m fast`, without the programs of its installation, which may have
// been removed.
func (d *dataDir) stopPostmaster(ctx context.Context) error {
	pid, ok := d.postmaster()
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	if err := syscall.Kill(pid, syscall.SIGINT); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("stopping PostgreSQL, process %d: %w", pid, err)
	}
	err := retry.Until(ctx, pollInterval, func(context.Context) (bool, error) {
		_, ok := d.postmaster()
		return !ok, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for PostgreSQL, process %d, to stop: %w", pid, err)
	}
	return nil
}
