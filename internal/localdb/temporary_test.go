package localdb

import (
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestStartTemporaryLeavesNothing(t *testing.T) {
	t.Parallel()
	s, remove, err := StartTemporary(t.Context(), Options{Settings: ForTests(), Progress: t.Output()})
	require.NoError(t, err)
	data := query(t, s.URL, "SELECT current_setting('data_directory')")
	require.NoError(t, remove())
	require.NoFileExists(t, filepath.Join(data, "PG_VERSION"))
	require.Error(t, ping(t.Context(), s.URL))
}

func TestStartTemporaryWithAURLRemovesNothing(t *testing.T) {
	t.Parallel()
	s, err := Start(t.Context(), options(t, newDataDir(t)))
	require.NoError(t, err)
	given, remove, err := StartTemporary(t.Context(), Options{URL: s.URL})
	require.NoError(t, err)
	require.NoError(t, remove())
	require.NoError(t, ping(t.Context(), given.URL))
}

// TestSweep takes a directory whose owner was killed, which frees its lock, and one whose owner lives.
func TestSweep(t *testing.T) {
	t.Parallel()
	parent := newDataDir(t).file("parent")
	require.NoError(t, os.Mkdir(parent, 0o755))
	abandoned, release, err := temporaryDir(t.Context(), parent, &progress{})
	require.NoError(t, err)
	s, err := Start(t.Context(), Options{DataDir: abandoned, Settings: ForTests(), Progress: t.Output()})
	require.NoError(t, err)
	release()

	alive, release, err := temporaryDir(t.Context(), parent, &progress{})
	require.NoError(t, err)
	defer release()
	require.NoDirExists(t, abandoned)
	require.Error(t, ping(t.Context(), s.URL))
	sweep(t.Context(), parent, &progress{})
	require.DirExists(t, alive)
}

func TestURLIsReadBackAsItWasMeant(t *testing.T) {
	t.Parallel()
	st := &state{Port: 5432, Password: `a/b:c@d?e"f`}
	u, err := url.Parse(st.url())
	require.NoError(t, err)
	password, _ := u.User.Password()
	require.Equal(t, st.Password, password)
	require.Equal(t, "127.0.0.1:5432", u.Host)
}
