// Package packages tests the files of a release: their signatures, and the packages for Linux in a Debian root.
package packages

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// repository is the root of the repository.
const repository = "../.."

// run runs a program in a directory and returns its output.
func run(t *testing.T, dir string, environment []string, argv ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), environment...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// do runs a program that must succeed.
func do(t *testing.T, dir string, environment []string, argv ...string) string {
	t.Helper()
	out, err := run(t, dir, environment, argv...)
	require.NoError(t, err, "%v: %s", argv, out)
	return out
}

// newKey creates a key to sign with, and returns it with its line in allowed_signers.
func newKey(t *testing.T) (private, signer string) {
	t.Helper()
	if _, err := exec.LookPath("ssh-keygen"); err != nil {
		t.Skip("signatures need ssh-keygen, of Debian's package openssh-client")
	}
	path := filepath.Join(t.TempDir(), "key")
	do(t, ".", nil, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", path)
	key, err := os.ReadFile(path)
	require.NoError(t, err)
	public, err := os.ReadFile(path + ".pub")
	require.NoError(t, err)
	return string(key), `release namespaces="roomsensor-release" ` + string(public)
}

// blocks returns the blocks of commands under a title of the page about packages.
func blocks(t *testing.T, title string) (list []string) {
	t.Helper()
	page, err := os.ReadFile(repository + "/docs/operate/packages.md")
	require.NoError(t, err)
	_, text, found := strings.Cut(string(page), "\n## "+title+"\n")
	require.True(t, found, title)
	text, _, _ = strings.Cut(text, "\n## ")
	for _, part := range strings.Split(text, "```sh\n")[1:] {
		block, _, _ := strings.Cut(part, "```")
		list = append(list, block)
	}
	return list
}

// release is a signed release in a directory, with what a user has to verify it.
type release struct{ dir, key, signer string }

func newRelease(t *testing.T) release {
	t.Helper()
	r := release{dir: t.TempDir()}
	r.key, r.signer = newKey(t)
	r.write(t, "roomsensor_linux_amd64", "program")
	r.write(t, "roomsensor_0.2.0_amd64.deb", "package")
	r.write(t, "allowed_signers", r.signer)
	out, err := r.sign(t)
	require.NoError(t, err, out)
	return r
}

func (r release) sign(t *testing.T) (out string, err error) {
	t.Helper()
	return run(t, repository, []string{
		"RELEASE_SIGNING_KEY=" + r.key, "ALLOWED_SIGNERS=" + filepath.Join(r.dir, "allowed_signers"),
		"RELEASE_REPOSITORY=https://git.example/a/b", "RELEASE_BUILDER=https://git.example/w", "RELEASE_RUN=https://git.example/r/1",
	}, "deploy/packages/sign", r.dir, "v0.2.0")
}

func (r release) write(t *testing.T, name, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(r.dir, name), []byte(text), 0o600))
}

func (r release) read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(r.dir, name))
	require.NoError(t, err)
	return string(text)
}

// The commands of the page accept what the release signed, and nothing else.
func TestSignature(t *testing.T) {
	t.Parallel()
	commands := blocks(t, "Verify")
	require.Len(t, commands, 2)
	_, foreign := newKey(t)
	for name, test := range map[string]struct {
		change string  // a script
		want   [2]bool // whether the checksums and the provenance are accepted
	}{
		"unchanged":                      {"", [2]bool{true, true}},
		"other files are missing":        {"rm roomsensor_linux_amd64", [2]bool{true, true}},
		"nothing to check":               {"rm roomsensor_*", [2]bool{}},
		"altered file":                   {"echo x >>roomsensor_0.2.0_amd64.deb", [2]bool{false, true}},
		"altered file with its checksum": {"echo x >>roomsensor_0.2.0_amd64.deb; sha256sum *.deb >SHA256SUMS", [2]bool{false, true}},
		"altered checksums":              {"sed -i '$d' SHA256SUMS", [2]bool{false, true}},
		"altered provenance":             {"sed -i s/go1/go2/ roomsensor_provenance.json", [2]bool{}},
		"no signature":                   {"rm *.sig", [2]bool{}},
		"signature of another file":      {"cp roomsensor_provenance.json.sig SHA256SUMS.sig", [2]bool{false, true}},
		"foreign key":                    {"mv foreign allowed_signers", [2]bool{}},
		"key for another purpose":        {"sed -i s/roomsensor-release/git/ allowed_signers", [2]bool{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRelease(t)
			r.write(t, "foreign", foreign)
			do(t, r.dir, nil, "sh", "-euc", test.change)
			for i, command := range commands {
				out, err := run(t, r.dir, nil, "bash", "-c", command)
				require.Equal(t, test.want[i], err == nil, "%s\n%s", command, out)
				if test.want[i] {
					require.Contains(t, out, `Good "roomsensor-release" signature for release`)
				}
			}
		})
	}
}

// The provenance names each file with its checksum, and the version, the commit and the builder.
func TestProvenance(t *testing.T) {
	t.Parallel()
	r := newRelease(t)
	sum := func(name string) string {
		return fmt.Sprintf("%x", sha256.Sum256([]byte(r.read(t, name))))
	}
	require.JSONEq(t, fmt.Sprintf(`{
		"_type": "https://in-toto.io/Statement/v1",
		"subject": [
			{"name": "roomsensor_0.2.0_amd64.deb", "digest": {"sha256": %q}},
			{"name": "roomsensor_linux_amd64", "digest": {"sha256": %q}}
		],
		"predicateType": "https://slsa.dev/provenance/v1",
		"predicate": {
			"buildDefinition": {
				"buildType": "urn:roomsensor:task-release:v1",
				"externalParameters": {"version": "v0.2.0"},
				"internalParameters": {"command": "go tool task release", "go": %q},
				"resolvedDependencies": [{"uri": "git+https://git.example/a/b", "digest": {"gitCommit": %q}}]
			},
			"runDetails": {"builder": {"id": "https://git.example/w"}, "metadata": {"invocationId": "https://git.example/r/1"}}
		}
	}`, sum("roomsensor_0.2.0_amd64.deb"), sum("roomsensor_linux_amd64"), strings.TrimSpace(do(t, ".", nil, "go", "env", "GOVERSION")),
		strings.TrimSpace(do(t, repository, nil, "git", "rev-parse", "HEAD"))), r.read(t, "roomsensor_provenance.json"))
	require.Contains(t, r.read(t, "SHA256SUMS"), sum("roomsensor_provenance.json")+"  roomsensor_provenance.json\n")
}

// Without a key, a release has no signatures and says so. With a key that users do not know, it fails.
func TestUnsigned(t *testing.T) {
	t.Parallel()
	r := newRelease(t)
	_, foreign := newKey(t)
	r.write(t, "allowed_signers", foreign)
	out, err := r.sign(t)
	require.Error(t, err, out)
	require.NotContains(t, out, strings.Split(r.key, "\n")[1], "a part of the key")

	r.key = ""
	out, err = r.sign(t)
	require.NoError(t, err, out)
	require.Contains(t, out, "This release is UNSIGNED")
	left, err := filepath.Glob(r.dir + "/*.sig")
	require.NoError(t, err)
	require.Empty(t, left, "the old signatures are of other files")
}
