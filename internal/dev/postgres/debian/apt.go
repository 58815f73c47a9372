package debian

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
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
		{"debian-archive-keyring", func() bool { return !exists(keyring()) }},
		// Debian's PostgreSQL reads the time zones of the machine.
		{"tzdata", func() bool { return !exists("/usr/share/zoneinfo/America/St_Johns") }},
	}
}

// keyring returns the file with the keys that sign Debian's packages.
func keyring() string {
	const path = "/usr/share/keyrings/debian-archive-keyring"
	if exists(path + ".pgp") {
		return path + ".pgp"
	}
	return path + ".gpg"
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
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
func mirrors(r release) []string {
	if r.id != "debian" {
		return []string{defaultMirror}
	}
	var found []string
	files := []string{"/etc/apt/sources.list"}
	for _, pattern := range []string{"*.list", "*.sources"} {
		matches, _ := filepath.Glob(filepath.Join("/etc/apt/sources.list.d", pattern)) // Only a bad pattern is an error.
		files = append(files, matches...)
	}
	for _, file := range files {
		data, err := os.ReadFile(file) //nolint:gosec // A file of apt.
		if err != nil {
			continue
		}
		if filepath.Ext(file) == ".sources" {
			found = append(found, deb822Mirrors(string(data), r.codename)...)
		} else {
			found = append(found, listMirrors(string(data), r.codename)...)
		}
	}
	return unique(append(found, defaultMirror))
}

// listMirrors reads lines such as `deb [arch=amd64] http://deb.debian.org/debian bookworm main`.
func listMirrors(text, suite string) []string {
	var found []string
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		if before, rest, ok := strings.Cut(line, "["); ok {
			_, after, _ := strings.Cut(rest, "]")
			line = before + after
		}
		fields := strings.Fields(line)
		if len(fields) >= 4 && fields[0] == "deb" && fields[2] == suite && slices.Contains(fields[3:], "main") {
			found = append(found, httpOnly(fields[1:2])...)
		}
	}
	return found
}

// deb822Mirrors reads paragraphs with fields such as `URIs: http://deb.debian.org/debian`.
func deb822Mirrors(text, suite string) []string {
	var found []string
	for paragraph := range strings.SplitSeq(strings.ReplaceAll(text, "\r\n", "\n"), "\n\n") {
		fields := deb822Fields(paragraph)
		enabled := len(fields["enabled"]) == 0 || fields["enabled"][0] != "no"
		if enabled && slices.Contains(fields["types"], "deb") && slices.Contains(fields["suites"], suite) &&
			slices.Contains(fields["components"], "main") {
			found = append(found, httpOnly(fields["uris"])...)
		}
	}
	return found
}

// deb822Fields returns the words of every field of a paragraph. A line that starts with white space continues the field
// before it.
func deb822Fields(paragraph string) map[string][]string {
	fields := map[string][]string{}
	name := ""
	for line := range strings.Lines(paragraph) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		value := line
		if !strings.HasPrefix(line, " ") && !strings.HasPrefix(line, "\t") {
			name, value, _ = strings.Cut(line, ":")
			name = strings.ToLower(name)
		}
		fields[name] = append(fields[name], strings.Fields(value)...)
	}
	return fields
}

// httpOnly keeps the addresses that mmdebstrap accepts: it does not know `cdrom:` and `mirror:`.
func httpOnly(uris []string) []string {
	return slices.DeleteFunc(slices.Clone(uris), func(uri string) bool {
		return !strings.HasPrefix(uri, "http://") && !strings.HasPrefix(uri, "https://")
	})
}

// unique removes repeated addresses and trailing slashes.
func unique(list []string) []string {
	var kept []string
	for _, s := range list {
		if s = strings.TrimRight(s, "/"); !slices.Contains(kept, s) {
			kept = append(kept, s)
		}
	}
	return kept
}
