package upgrade

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"roomsensor/test/proctest"
)

// lastPublished is the old version of a clone without tags: the last published commit. Move it with each release; see
// docs/development.md.
const lastPublished = "5944aef408e1112351001e40c3ccd7e8be0da5c5"

// ErrNoBase is returned if the clone lacks every old version. It says what to do.
var ErrNoBase = errors.New("this clone has neither a tag before this commit nor the commit " + lastPublished +
	"; run `git fetch --unshallow --tags`, or name an old version with --base")

// base is the old version.
type base struct {
	name   string // the tag, or the beginning of the commit
	commit string
}

// findBase returns the version that is named, or the newest tag before the current commit, or lastPublished. The
// directory is in the clone.
func findBase(ctx context.Context, dir, named string) (b base, err error) {
	if named != "" {
		b.name = named
		if b.commit, err = commitOf(ctx, dir, named); err != nil {
			return b, fmt.Errorf("finding the old version %s: %w", named, err)
		}
		return b, nil
	}
	// The parent, because a release is compared with the one before it.
	if tag, err := git(ctx, dir, "describe", "--tags", "--abbrev=0", "--match=v*", "HEAD^"); err == nil {
		b.name = tag
	} else {
		b.name = lastPublished
	}
	if b.commit, err = commitOf(ctx, dir, b.name); err != nil {
		return b, ErrNoBase
	}
	const shortHash = 10
	if b.name == lastPublished {
		b.name = b.name[:shortHash]
	}
	return b, nil
}

func commitOf(ctx context.Context, dir, revision string) (string, error) {
	return git(ctx, dir, "rev-parse", "--verify", "--quiet", revision+"^{commit}")
}

// git runs a command of git in a directory and returns what it prints.
func git(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...) //nolint:gosec // The arguments are the trial's.
	cmd.Dir = dir
	var stderr strings.Builder
	cmd.Stderr = &stderr
	output, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, stderr.String())
	}
	return strings.TrimSpace(string(output)), nil
}

// build compiles roomsensor as it was at the commit into a directory, from an export of the commit: the work tree and
// its list of work trees do not change.
func (b base) build(ctx context.Context, repository, dir string) (path string, err error) {
	source := filepath.Join(dir, "source")
	if err := os.MkdirAll(source, 0o750); err != nil {
		return "", fmt.Errorf("creating the directory of the old version: %w", err)
	}
	archive := filepath.Join(dir, "source.tar")
	root, err := git(ctx, repository, "rev-parse", "--show-toplevel")
	if err != nil {
		return "", err
	}
	if _, err := git(ctx, root, "archive", "--output="+archive, b.commit); err != nil {
		return "", err
	}
	path = filepath.Join(dir, "roomsensor")
	for _, args := range [][]string{
		{"tar", "-xf", archive, "-C", source},
		{"go", "-C", source, "build", "-trimpath", "-ldflags=-s -w", "-o", path, proctest.Roomsensor},
	} {
		cmd := exec.CommandContext(ctx, args[0], args[1:]...) //nolint:gosec // The arguments are the trial's.
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if output, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("building the old version: %w: %s", err, output)
		}
	}
	return path, nil
}
