package localdb

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// aptTimeout is for a handful of small packages.
const aptTimeout = 10 * time.Minute

// tool is something the private copy needs from the machine.
type tool struct {
	pkg     string
	missing func() bool
}

func tools() []tool {
	noProgram := func(name string) func() bool {
		return func() bool { return lookup(name) == "" }
	}
	return []tool{
		{"mmdebstrap", noProgram("mmdebstrap")},
		{"patchelf", noProgram("patchelf")},
		{"debian-archive-keyring", func() bool { return !exists(keyring()) }},
		// PostgreSQL of Debian reads the machine's time zones.
		{"tzdata", func() bool { return !exists("/usr/share/zoneinfo/America/St_Johns") }},
	}
}

// keyring holds the keys that Debian's packages are signed with.
func keyring() string {
	const path = "/usr/share/keyrings/debian-archive-keyring"
	if exists(path + ".pgp") {
		return path + ".pgp"
	}
	return path + ".gpg"
}

// lookup is exec.LookPath with the directories of an administrator.
func lookup(name string) string {
	for _, dir := range filepath.SplitList(searchPath()) {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path
		}
	}
	return ""
}

// needTools installs what is missing, which only root can.
func needTools(ctx context.Context, p *progress) error {
	var missing []string
	for _, t := range tools() {
		if t.missing() {
			missing = append(missing, t.pkg)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	packages := strings.Join(missing, " ")
	if os.Geteuid() != 0 {
		return fmt.Errorf("a private copy of Debian's packages needs %s, which only root can install", packages)
	}
	p.say("installing %s", packages)
	// A source that fails does not matter as long as the packages are found.
	_, updateErr := apt(ctx, p, "update")
	if _, err := apt(ctx, p, append([]string{"install", "--yes", "--no-install-recommends"}, missing...)...); err != nil {
		if updateErr != nil {
			return fmt.Errorf("%w\n    after %w", err, updateErr)
		}
		return err
	}
	return nil
}

func apt(ctx context.Context, p *progress, args ...string) (string, error) {
	return command{
		step: "running apt-get " + args[0],
		// Another apt, of the system's own upgrades for example, is waited for.
		argv: append([]string{lookup("apt-get"), "--quiet", "--option=DPkg::Lock::Timeout=300"}, args...),
		dir:  "/", env: append(proxyEnvironment(), "DEBIAN_FRONTEND=noninteractive"), limit: aptTimeout,
	}.run(ctx, p)
}

// proxyEnvironment passes on how this machine reaches others.
func proxyEnvironment() []string {
	var env []string
	for _, name := range []string{"http_proxy", "https_proxy", "no_proxy"} {
		if value := os.Getenv(name); value != "" {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// aptOptions returns how apt of this machine reaches its mirrors, which mmdebstrap does not look at by itself.
func aptOptions(ctx context.Context) []string {
	out, err := command{
		step: "asking apt for its proxies", argv: []string{"apt-config", "dump", "--no-empty", "--format", `%f "%v";%n`},
		dir: "/", limit: time.Minute,
	}.run(ctx, &progress{})
	if err != nil {
		return nil // Without apt's configuration the direct way is all there is.
	}
	var options []string
	for line := range strings.Lines(out) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "Acquire::http") {
			options = append(options, line)
		}
	}
	return options
}
