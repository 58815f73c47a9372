package debian

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/dev/command"
)

func TestMirrors(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"http://a.example/debian", "https://b.example/debian"}, mirrorsIn(
		`'http://a.example/debian/dists/bookworm/InRelease' a.example_debian_dists_bookworm_InRelease 0
'http://a.example/debian/dists/bookworm-updates/InRelease' a.example_debian_dists_bookworm-updates_InRelease 0
'http://a.example/debian-security/dists/bookworm-security/InRelease' a.example_debian-security_InRelease 0
'cdrom:[x]/dists/bookworm/InRelease' x_dists_bookworm_InRelease 0
'https://b.example/debian/dists/bookworm/InRelease' b.example_debian_dists_bookworm_InRelease 0
`, "bookworm"))
	require.Equal(t, []string{defaultMirror}, mirrors(t.Context(), release{id: "ubuntu", codename: "noble"}))
	require.Contains(t, mirrors(t.Context(), release{id: "debian", codename: "bookworm"}), defaultMirror)
}

// A person who does not answer yes keeps the system as it is.
func TestInstallDeclined(t *testing.T) {
	t.Parallel()
	var progress strings.Builder
	p := &command.Progress{W: &progress}
	asked := ""
	err := install(t.Context(), p, func(_ context.Context, question string) (bool, error) {
		asked = question
		return false, nil
	}, []string{"no-such-package", "patchelf"})
	require.ErrorContains(t, err, "you did not allow to install no-such-package, patchelf with apt-get")
	require.Contains(t, asked, "Install no-such-package, patchelf with apt-get?")
	require.ErrorIs(t, install(t.Context(), p, func(context.Context, string) (bool, error) {
		return true, context.Canceled
	}, []string{"no-such-package"}), context.Canceled)
	require.Empty(t, progress.String())
}
