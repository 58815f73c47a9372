package debian

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/dev/command"
)

func TestMirrorsOfSources(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		text string
		want []string
	}{
		"one": {
			"Types: deb\nURIs: http://mirror.example/debian\nSuites: bookworm bookworm-updates\nComponents: main\n",
			[]string{"http://mirror.example/debian"},
		},
		"security is another archive": {
			"Types: deb\nURIs: http://mirror.example/debian-security\nSuites: bookworm-security\nComponents: main\n", nil,
		},
		"comments, letter case, several addresses over lines": {
			"# A comment\ntypes: deb deb-src\nuris: https://a.example/debian\n# Another\n http://b.example/debian\n" +
				"suites: bookworm\ncomponents: main contrib\n",
			[]string{"https://a.example/debian", "http://b.example/debian"},
		},
		"disabled": {
			"Enabled: no\nTypes: deb\nURIs: http://mirror.example/debian\nSuites: bookworm\nComponents: main\n", nil,
		},
		"sources only": {
			"Types: deb-src\nURIs: http://mirror.example/debian\nSuites: bookworm\nComponents: main\n", nil,
		},
		"what mmdebstrap cannot read": {
			"Types: deb\nURIs: cdrom:[x]/ mirror+file:/etc/apt/m\nSuites: bookworm\nComponents: main\n", nil,
		},
		"paragraphs": {
			"Types: deb\r\nURIs: http://a.example\r\nSuites: sid\r\nComponents: main\r\n\r\n" +
				"Types: deb\r\nURIs: http://b.example\r\nSuites: bookworm\r\nComponents: main\r\n",
			[]string{"http://b.example"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, test.want, deb822Mirrors(test.text, "bookworm"))
		})
	}
}

func TestMirrorsOfAList(t *testing.T) {
	t.Parallel()
	text := `
# deb http://commented.example/debian bookworm main
deb http://a.example/debian bookworm main contrib # the best
deb-src http://sources.example/debian bookworm main
deb [ arch=amd64 signed-by=/usr/share/keyrings/k.gpg ] https://b.example/debian bookworm main
deb http://contrib.example/debian bookworm contrib
deb http://security.example/debian bookworm-security main
deb http://short.example/debian
`
	require.Equal(t, []string{"http://a.example/debian", "https://b.example/debian"}, listMirrors(text, "bookworm"))
}

func TestMirrorsEndWithTheOneForEverybody(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{defaultMirror}, mirrors(release{id: "ubuntu", codename: "noble"}))
	found := mirrors(release{id: "debian", codename: "bookworm"})
	require.Contains(t, found, defaultMirror)
	require.Equal(t, found, unique(found))
	require.Equal(t, []string{"http://a"}, unique([]string{"http://a/", "http://a"}))
}

func FuzzMirrors(f *testing.F) {
	f.Add("Types: deb\nURIs: http://mirror.example/debian\nSuites: bookworm\nComponents: main\n")
	f.Add("deb [arch=amd64] http://mirror.example/debian bookworm main")
	f.Add("deb [ http://mirror.example/debian bookworm main\n: x\n\ty")
	f.Fuzz(func(t *testing.T, text string) {
		for _, mirror := range append(deb822Mirrors(text, "bookworm"), listMirrors(text, "bookworm")...) {
			require.Contains(t, text, mirror)
			require.True(t, strings.HasPrefix(mirror, "http"))
			require.Len(t, strings.Fields(mirror), 1)
		}
	})
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
