package debian

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"roomsensor/internal/dev/command"
)

// aptTimeout is the limit for installing a few small packages.
const aptTimeout = 10 * time.Minute

// tool is a package that the copy needs on this machine.
type tool struct {
	pkg     string
	missing func() bool
}

func tools() []tool {
	noProgram := func(name string) func() bool {
		return func() bool { return command.Find(name) == "" }
	}
	return []tool{
		{"mmdebstrap", noProgram("mmdebstrap")},
		{"patchelf", noProgram("patchelf")},
		{"debian-archive-keyring", func() bool { return !command.Exists(keyring()) }},
		// Debian's PostgreSQL reads the time zones of the machine.
		{"tzdata", func() bool { return !command.Exists("/usr/share/zoneinfo/America/St_Johns") }},
	}
}

// keyring returns the file with the keys that sign Debian's packages.
func keyring() string {
	const path = "/usr/share/keyrings/debian-archive-keyring"
	if command.Exists(path + ".pgp") {
		return path + ".pgp"
	}
	return path + ".gpg"
}

// Confirm asks a person a question. It is nil if nobody can be asked.
type Confirm func(ctx context.Context, question string) (yes bool, err error)

// installTools installs the missing tools. Only root can do that.
func installTools(ctx context.Context, p *command.Progress, confirm Confirm) error {
	var missing []string
	for _, t := range tools() {
		if t.missing() {
			missing = append(missing, t.pkg)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	if os.Geteuid() != 0 {
		return fmt.Errorf("a private copy of Debian's packages needs %s, which only root can install",
			strings.Join(missing, ", "))
	}
	return install(ctx, p, confirm, missing)
}

// install installs packages after a confirmation.
func install(ctx context.Context, p *command.Progress, confirm Confirm, packages []string) error {
	list := strings.Join(packages, ", ")
	if confirm != nil {
		yes, err := confirm(ctx, "TimescaleDB needs system packages. Install "+list+" with apt-get? Type yes to continue: ")
		if err != nil {
			return err
		}
		if !yes {
			return fmt.Errorf("you did not allow to install %s with apt-get", list)
		}
	}
	p.Log("installing the system packages %s with apt-get", list)
	// A source that fails does not matter if the packages are found.
	_, updateErr := apt(ctx, p, "update")
	if _, err := apt(ctx, p, append([]string{"install", "--yes", "--no-install-recommends"}, packages...)...); err != nil {
		if updateErr != nil {
			return fmt.Errorf("%w\n    after %w", err, updateErr)
		}
		return err
	}
	return nil
}

func apt(ctx context.Context, p *command.Progress, args ...string) (string, error) {
	return command.Command{
		Step: "running apt-get " + args[0],
		// Wait for another apt, for example unattended upgrades.
		Argv: append([]string{command.Find("apt-get"), "--quiet", "--option=DPkg::Lock::Timeout=300"}, args...),
		Dir:  "/", Env: append(proxyEnvironment(), "DEBIAN_FRONTEND=noninteractive"), Limit: aptTimeout,
	}.Run(ctx, p)
}

// proxyEnvironment returns the proxy settings of this process.
func proxyEnvironment() []string { return command.Inherited("http_proxy", "https_proxy", "no_proxy") }

// aptOptions returns apt's proxy configuration, which mmdebstrap does not read by itself.
func aptOptions(ctx context.Context) []string {
	out, err := command.Command{
		Step: "reading apt's proxies", Argv: []string{"apt-config", "dump", "--no-empty", "--format", `%f "%v";%n`},
		Dir: "/", Limit: time.Minute,
	}.Run(ctx, &command.Progress{})
	if err != nil {
		return nil // Without apt's configuration, mmdebstrap connects directly.
	}
	var options []string
	for line := range strings.Lines(out) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "Acquire::http") {
			options = append(options, line)
		}
	}
	return options
}

// defaultMirror serves Debian to everybody.
const defaultMirror = "http://deb.debian.org/debian"

// release is the part of /etc/os-release that matters here.
type release struct{ id, codename string }

var errNotDebian = errors.New("this is not Debian or Ubuntu")

// osRelease returns the release of Debian or Ubuntu, or errNotDebian.
func osRelease() (release, error) {
	data, err := os.ReadFile("/etc/os-release")
	if err != nil {
		return release{}, errNotDebian
	}
	fields := map[string]string{}
	for line := range strings.Lines(string(data)) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
			fields[name] = strings.Trim(value, `"'`)
		}
	}
	family := append(strings.Fields(fields["ID_LIKE"]), fields["ID"])
	if !slices.Contains(family, "debian") && !slices.Contains(family, "ubuntu") {
		return release{}, errNotDebian
	}
	return release{id: fields["ID"], codename: fields["VERSION_CODENAME"]}, nil
}

// mirrors returns the mirrors to try. The mirrors of this machine come first, because it may reach no others.
func mirrors(ctx context.Context, r release) []string {
	var found []string
	if r.id == "debian" {
		uris, err := command.Command{
			Step: "reading apt's sources", Argv: []string{"apt-get", "--print-uris", "update"}, Dir: "/", Limit: time.Minute,
		}.Run(ctx, &command.Progress{})
		if err == nil { // Otherwise the default mirror is left.
			found = mirrorsIn(uris, r.codename)
		}
	}
	if !slices.Contains(found, defaultMirror) {
		found = append(found, defaultMirror)
	}
	return found
}

// mirrorsIn returns the mirrors of a release in what apt would download. Its lines begin with an address such as
// 'http://deb.debian.org/debian/dists/bookworm/InRelease'. mmdebstrap does not know addresses such as `cdrom:`.
func mirrorsIn(uris, codename string) []string {
	var found []string
	for line := range strings.Lines(uris) {
		mirror, _, ok := strings.Cut(strings.TrimPrefix(line, "'"), "/dists/"+codename+"/InRelease'")
		if ok && (strings.HasPrefix(mirror, "http://") || strings.HasPrefix(mirror, "https://")) {
			found = append(found, mirror)
		}
	}
	return found
}
