package config_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/config"
)

// TestSecretRead checks that a secret in a file is read each time, and that no error repeats what may be a secret.
func TestSecretRead(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "url")
	cfg := validAPI()
	cfg.DatabaseURL = config.Secret(config.InFile + path)
	requireValueError(t, cfg.Validate(), "database-url")
	for _, want := range []string{"postgres://a:one@db/x", "postgres://a:two@db/x"} {
		require.NoError(t, os.WriteFile(path, []byte(want+"\n"), 0o600))
		got, err := cfg.DatabaseURL.Read()
		require.NoError(t, err)
		require.Equal(t, want, got)
		require.NoError(t, cfg.Validate())
	}
	require.NoError(t, os.WriteFile(path, []byte("secret"), 0o600))
	requireValueError(t, cfg.Validate(), "database-url")
}
