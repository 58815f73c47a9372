package postgres

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"roomsensor/internal/dev/command"
)

// minPostgres is the oldest PostgreSQL that TimescaleDB 2.19 runs on.
const minPostgres = 15

// installation is a PostgreSQL installation with TimescaleDB.
type installation struct {
	bin   string
	major int
	how   string
}

// binDirs returns patterns of the directories in which packages and people install PostgreSQL's programs.
func binDirs() []string {
	return []string{
		"/usr/lib/postgresql/*/bin",
		"/usr/pgsql-*/bin",
		"/usr/local/pgsql*/bin",
		"/opt/homebrew/opt/postgresql*/bin",
		"/usr/local/opt/postgresql*/bin",
		"/home/linuxbrew/.linuxbrew/opt/postgresql*/bin",
		"/Applications/Postgres.app/Contents/Versions/*/bin",
		"/opt/local/lib/postgresql*/bin",
		"/usr/local/bin",
		"/usr/bin",
	}
}

// installed returns the usable installations of this machine, the newest PostgreSQL first. The error says what is wrong
// with the others.
func installed(ctx context.Context) ([]*installation, error) {
	var found []*installation
	var unfit []error
	for _, bin := range programDirs(ctx) {
		in, err := inspect(ctx, bin)
		if err != nil {
			unfit = append(unfit, fmt.Errorf("%s: %w", bin, err))
			continue
		}
		found = append(found, in)
	}
	slices.SortStableFunc(found, func(a, b *installation) int { return b.major - a.major })
	return found, errors.Join(unfit...)
}

// programDirs returns the directories that hold a PostgreSQL server, each once.
func programDirs(ctx context.Context) []string {
	var dirs []string
	if bin, err := pgConfig(ctx, "pg_config", "--bindir"); err == nil {
		dirs = append(dirs, bin)
	}
	for _, pattern := range binDirs() {
		matches, err := filepath.Glob(pattern)
		if err == nil {
			dirs = append(dirs, matches...)
		}
	}
	var servers, seen []string
	for _, dir := range dirs {
		resolved, err := filepath.EvalSymlinks(filepath.Join(dir, "postgres"))
		if err == nil && command.Exists(filepath.Join(dir, "initdb")) && !slices.Contains(seen, resolved) {
			servers, seen = append(servers, dir), append(seen, resolved)
		}
	}
	return servers
}

var postgresVersion = regexp.MustCompile(`PostgreSQL\) (\d+)`)

// inspect returns the installation of a directory of programs, or an error that says why it cannot be used.
func inspect(ctx context.Context, bin string) (*installation, error) {
	out, err := command.Command{
		Step: "reading the version of PostgreSQL", Argv: []string{filepath.Join(bin, "postgres"), "--version"},
		Dir: "/", Limit: time.Minute,
	}.Run(ctx, &command.Progress{})
	if err != nil {
		return nil, err
	}
	match := postgresVersion.FindStringSubmatch(out)
	if match == nil {
		return nil, fmt.Errorf("it reports the version %q", strings.TrimSpace(out))
	}
	major, err := strconv.Atoi(match[1])
	if err != nil {
		return nil, fmt.Errorf("reading its version: %w", err)
	}
	if major < minPostgres {
		return nil, fmt.Errorf("it is PostgreSQL %d and %d is the oldest that works", major, minPostgres)
	}
	if err := sufficient(extensionVersion(ctx, bin, major, "timescaledb")); err != nil {
		return nil, err
	}
	if extensionVersion(ctx, bin, major, "btree_gist") == "" {
		return nil, errors.New("it does not have the extension btree_gist, which is in PostgreSQL's contrib package")
	}
	return &installation{bin: bin, major: major, how: "the PostgreSQL " + match[1] + " in " + bin}, nil
}

var defaultVersion = regexp.MustCompile(`(?m)^default_version\s*=\s*'([^']+)'`)

// extensionVersion returns the version of an extension of an installation, or an empty string.
func extensionVersion(ctx context.Context, bin string, major int, name string) string {
	for _, share := range shareDirs(ctx, bin, major) {
		//nolint:gosec // A file of PostgreSQL.
		control, err := os.ReadFile(filepath.Join(share, "extension", name+".control"))
		if err != nil {
			continue
		}
		if match := defaultVersion.FindSubmatch(control); match != nil {
			return string(match[1])
		}
	}
	return ""
}

// shareDirs returns the directories of extensions: that of pg_config, and the usual ones of packages without it.
func shareDirs(ctx context.Context, bin string, major int) []string {
	prefix := filepath.Dir(bin)
	dirs := []string{
		filepath.Join(bin, "../../../../share/postgresql", strconv.Itoa(major)), // Debian.
		filepath.Join(prefix, "share", "postgresql"),
		filepath.Join(prefix, "share"),
	}
	if share, err := pgConfig(ctx, filepath.Join(bin, "pg_config"), "--sharedir"); err == nil {
		return append([]string{share}, dirs...)
	}
	return dirs
}

func pgConfig(ctx context.Context, program, option string) (string, error) {
	out, err := command.Command{
		Step: "running pg_config", Argv: []string{program, option}, Dir: "/", Limit: time.Minute,
	}.Run(ctx, &command.Progress{})
	return strings.TrimSpace(out), err
}

// startInstalled uses a PostgreSQL that is installed on this machine.
func (s starter) startInstalled(ctx context.Context) (*state, error) {
	found, err := installed(ctx)
	if len(found) == 0 && err == nil {
		return nil, errors.New("no PostgreSQL server is installed")
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("no installed PostgreSQL can be used: %w", err)
	}
	return s.startCluster(ctx, found[0], nil)
}

// installationOf returns programs that can serve existing data: the ones that created it, otherwise others of the same
// major version, which has the same format.
func (s starter) installationOf(ctx context.Context, created *state) (*installation, error) {
	if in, err := inspect(ctx, created.Bin); err == nil {
		in.how = created.How
		return in, nil
	}
	version, err := os.ReadFile(filepath.Join(s.dir.file("pgdata"), "PG_VERSION"))
	if err != nil {
		return nil, fmt.Errorf("reading the version of the data: %w", err)
	}
	found, _ := installed(ctx) // Why others cannot be used does not matter here.
	if in, err := s.existingCopy(ctx); err == nil {
		found = append(found, in)
	}
	for _, in := range found {
		if strconv.Itoa(in.major) == strings.TrimSpace(string(version)) {
			return in, nil
		}
	}
	return nil, fmt.Errorf("the data in %s is of PostgreSQL %s with TimescaleDB, which is no longer installed (%s):"+
		" install it, or remove the directory to start with an empty database",
		s.dir.path, strings.TrimSpace(string(version)), created.Bin)
}

// existingCopy returns the private copy of Debian's packages of this user, or the one that root made.
func (s starter) existingCopy(ctx context.Context) (*installation, error) {
	own, err := Dir("timescaledb")
	if err != nil {
		return nil, err
	}
	for _, dir := range []string{own, filepath.Join(systemBase, "timescaledb")} {
		// The path of the directory has the name of the user, and is not part of the pattern.
		bins, _ := fs.Glob(os.DirFS(dir), "usr/lib/postgresql/*/bin") // Only a bad pattern is an error.
		for _, bin := range bins {
			if in, err := inspect(ctx, filepath.Join(dir, bin)); err == nil {
				in.how = "a private copy of Debian's packages in " + dir
				return in, nil
			}
		}
	}
	return nil, errors.New("there is no private copy of Debian's packages yet")
}
