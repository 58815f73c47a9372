package localdb

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// minPostgres is the oldest PostgreSQL that TimescaleDB 2.19 runs on.
const minPostgres = 15

// installation is a PostgreSQL of this machine that has TimescaleDB.
type installation struct {
	bin   string
	major int
	how   string
}

// binDirs are the places where packages and people put PostgreSQL's programs.
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

// installed returns the installations of this machine that can be used, the newest PostgreSQL first, and says what is
// wrong with the others.
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
		if err == nil && exists(filepath.Join(dir, "initdb")) && !slices.Contains(seen, resolved) {
			servers, seen = append(servers, dir), append(seen, resolved)
		}
	}
	return servers
}

var postgresVersion = regexp.MustCompile(`PostgreSQL\) (\d+)`)

// inspect tells what the programs in a directory are, or why they do not do.
func inspect(ctx context.Context, bin string) (*installation, error) {
	out, err := command{
		step: "asking PostgreSQL for its version", argv: []string{filepath.Join(bin, "postgres"), "--version"},
		dir: "/", limit: time.Minute,
	}.run(ctx, &progress{})
	if err != nil {
		return nil, err
	}
	match := postgresVersion.FindStringSubmatch(out)
	if match == nil {
		return nil, fmt.Errorf("it calls itself %q", strings.TrimSpace(out))
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

// extensionVersion returns the version of an extension beside the programs, empty for none.
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

// shareDirs are the places of extensions: what pg_config says, and for packages that leave it out their own layout.
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
	out, err := command{
		step: "asking pg_config", argv: []string{program, option}, dir: "/", limit: time.Minute,
	}.run(ctx, &progress{})
	return strings.TrimSpace(out), err
}

// startInstalled is the way through a PostgreSQL of this machine.
func (s starter) startInstalled(ctx context.Context) (*state, error) {
	found, err := installed(ctx)
	if len(found) == 0 && err == nil {
		return nil, errors.New("no PostgreSQL server is installed")
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("no PostgreSQL that is installed can be used: %w", err)
	}
	return s.startCluster(ctx, found[0], nil)
}

// installationOf returns programs that can serve data that is there: the ones that made it, else others of the same
// major version, whose format is the same.
func (s starter) installationOf(ctx context.Context, made *state) (*installation, error) {
	if in, err := inspect(ctx, made.Bin); err == nil {
		in.how = made.How
		return in, nil
	}
	version, err := os.ReadFile(filepath.Join(s.dir.file("pgdata"), "PG_VERSION"))
	if err != nil {
		return nil, fmt.Errorf("reading the version of the data: %w", err)
	}
	found, _ := installed(ctx) // What is wrong with others does not help here.
	if made, err := s.copyMade(ctx); err == nil {
		found = append(found, made)
	}
	for _, in := range found {
		if strconv.Itoa(in.major) == strings.TrimSpace(string(version)) {
			return in, nil
		}
	}
	return nil, fmt.Errorf("the data in %s is of PostgreSQL %s with TimescaleDB, which is not installed any more (%s):"+
		" install it, or remove the directory to begin anew", s.dir.path, strings.TrimSpace(string(version)), made.Bin)
}
