package archive

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// directory has the files of an archive in a directory.
type directory string

// List lists the files. A directory that does not exist has none. The directory may be a symbolic link.
func (d directory) List(context.Context) (map[string]int64, error) {
	sizes := map[string]int64{}
	err := fs.WalkDir(os.DirFS(string(d)), ".", func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && path == "." {
			return fs.SkipAll
		}
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err //nolint:wrapcheck // List wraps it.
		}
		sizes[path] = info.Size()
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("listing the archive: %w", err)
	}
	return sizes, nil
}

func (d directory) path(name string) string {
	return filepath.Join(string(d), filepath.FromSlash(name))
}

// Open opens a file.
func (d directory) Open(_ context.Context, path string) (*os.File, error) {
	file, err := os.Open(d.path(path))
	if err != nil {
		return nil, fmt.Errorf("opening a file of the archive: %w", err)
	}
	return file, nil
}

// Create creates a file beside the path, so that Store can rename it. No glob of *.parquet finds it.
func (d directory) Create(path string) (*os.File, error) {
	dir := filepath.Dir(d.path(path))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("creating a directory of the archive: %w", err)
	}
	file, err := os.CreateTemp(dir, ".*.partial")
	if err != nil {
		return nil, fmt.Errorf("creating a file of the archive: %w", err)
	}
	return file, nil
}

// Store syncs a file, renames it, and syncs the directories that have it.
func (d directory) Store(_ context.Context, file *os.File, path, _ string) error {
	err := file.Sync()
	if err == nil {
		err = os.Rename(file.Name(), d.path(path))
	}
	for dir := filepath.Dir(d.path(path)); err == nil; dir = filepath.Dir(dir) {
		err = syncDirectory(dir)
		if dir == filepath.Clean(string(d)) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("storing a file of the archive: %w", err)
	}
	return nil
}

func syncDirectory(path string) error {
	dir, err := os.Open(path) //nolint:gosec // The operator chooses it.
	if err != nil {
		return err //nolint:wrapcheck // Store wraps it.
	}
	return errors.Join(dir.Sync(), dir.Close())
}
