package schema

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
)

// Fingerprint names what Up makes: it changes with every migration, so that a
// database that was migrated before is known to be up to date or not.
func Fingerprint() (string, error) {
	h := sha256.New()
	err := fs.WalkDir(FS, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		migration, err := FS.ReadFile(path)
		if err != nil {
			return fmt.Errorf("reading %s: %w", path, err)
		}
		_, _ = fmt.Fprintf(h, "%s %d\n%s", path, len(migration), migration) // A hash takes everything.
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("reading the migrations: %w", err)
	}
	_, _ = h.Write([]byte(ensureEdition + ensureLayout))
	return hex.EncodeToString(h.Sum(nil)), nil
}
