package packages

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// build makes the packages of a version for this machine, and returns the path of both without its extension.
func build(t *testing.T, version string) string {
	t.Helper()
	dir := t.TempDir()
	do(t, repository, nil, "go", "build", "-trimpath", "-tags=timetzdata",
		"-ldflags=-s -w -X main.version="+version, "-o", dir+"/roomsensor_linux_"+runtime.GOARCH, "./cmd/roomsensor")
	do(t, repository, []string{"ARCHITECTURES=" + runtime.GOARCH}, "deploy/packages/build", dir, version)
	return dir + "/roomsensor_" + strings.TrimPrefix(version, "v") + "_" + runtime.GOARCH
}

// chroot is a Debian root. Its systemctl writes its arguments to a file, because no systemd runs there.
type chroot struct {
	t    *testing.T
	path string
}

func newChroot(t *testing.T) chroot {
	t.Helper()
	c := chroot{t, t.TempDir()}
	archive, err := filepath.Abs(repository + "/bin/packages-root.tar")
	require.NoError(t, err)
	do(t, c.path, nil, "tar", "-xf", archive, "--exclude=./dev/*")
	do(t, c.path, nil, "sh", "-euc", `umask 0; mknod dev/null c 1 3; umask 22; mkdir -p run/systemd/system; rm bin/systemctl
		echo force-unsafe-io >etc/dpkg/dpkg.cfg.d/fast
		printf '#!/bin/sh\necho "$@" >>/systemctl.log\n' >bin/systemctl; chmod 755 bin/systemctl`)
	return c
}

// sh runs a script in the root, which must succeed.
func (c chroot) sh(script string) string {
	c.t.Helper()
	return c.do("chroot", c.path, "sh", "-euc", script)
}

// do runs a program for which /proc of the root is mounted.
func (c chroot) do(argv ...string) string {
	c.t.Helper()
	return do(c.t, "/", []string{"LC_ALL=C.UTF-8", "MANWIDTH=80"},
		append([]string{"unshare", "--mount", "--mount-proc=" + c.path + "/proc"}, argv...)...)
}

// systemctl returns and forgets what was called.
func (c chroot) systemctl() string {
	c.t.Helper()
	return c.sh("cat /systemctl.log; : >/systemctl.log")
}

// files lists the files of the root, but those that every change of packages writes.
func (c chroot) files() (list []string) {
	c.t.Helper()
	written := regexp.MustCompile(`^(var/(lib/(dpkg|rpm|systemd)|cache|log)/|run/|root/|etc/((passwd|group|g?shadow)-|\.pwd\.lock)$|[^/]*$)`)
	err := filepath.WalkDir(c.path, func(path string, _ fs.DirEntry, err error) error {
		if name, _ := filepath.Rel(c.path, path); err == nil && !written.MatchString(name) {
			list = append(list, name)
		}
		return err
	})
	require.NoError(c.t, err)
	return list
}

// restarts is what systemctl gets after an installation or an upgrade: nothing that would start a service.
const restarts = `--system daemon-reload
try-restart roomsensor-worker.service
try-restart roomsensor-receiver.service
try-restart roomsensor-api.service
try-restart roomsensor-dashboard.service
try-restart roomsensor-notify.service
try-restart roomsensor-mqtt.service
`

const settings = `/etc/roomsensor 755 root:root
/etc/roomsensor/api.env 600 root:root
/etc/roomsensor/dashboard.env 600 root:root
/etc/roomsensor/migrate.env 600 root:root
/etc/roomsensor/mqtt.env 600 root:root
/etc/roomsensor/notify.env 600 root:root
/etc/roomsensor/receiver.env 600 root:root
/etc/roomsensor/settings.env 600 root:root
/etc/roomsensor/worker.env 600 root:root
`

// showSettings prints the settings with their modes and owners.
const showSettings = "find /etc/roomsensor -printf '%p %m %u:%g\n' | sort"

// checkInstalled checks what an installation of any package gives.
func (c chroot) checkInstalled(version string) {
	t := c.t
	t.Helper()
	require.Contains(t, c.sh("roomsensor version --output text"), version)
	require.Equal(t, "755 root:root\n", c.sh("stat -c '%a %U:%G' /usr/bin/roomsensor"))
	require.Contains(t, c.sh("man roomsensor"), "roomsensor team create")
	require.Contains(t, c.sh("man roomsensor-admin"), "with the\n       settings of roomsensor-migrate")
	for _, process := range []string{"api", "dashboard", "migrate", "mqtt", "notify", "receiver", "worker"} {
		require.Regexp(t, `^roomsensor-`+process+`:.*:/usr/sbin/nologin\n$`, c.sh("getent passwd roomsensor-"+process))
		require.Contains(t, c.sh("cat /usr/lib/systemd/system/roomsensor-"+process+".service"), "ExecStart=roomsensor ")
	}
	require.Regexp(t, `^roomsensor:`, c.sh("getent group roomsensor"))
	require.Empty(t, c.sh("find /etc/systemd -name '*roomsensor*'"), "no service is enabled")
}

// Linking two versions, unpacking two Debian roots and lintian take 20 s each on a busy machine.
func TestPackages(t *testing.T) {
	t.Parallel()
	if os.Getenv("ROOMSENSOR_PACKAGES") == "" {
		t.Skip("`go tool task packages-test` makes and installs packages")
	}
	older, newer := build(t, "v0.1.0"), build(t, "v0.2.0")
	for name, test := range map[string]func(t *testing.T, older, newer string){
		"deb": testDebian, "rpm": testRPM, "lintian": testLintian, "same bytes": testSameBytes,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, older, newer)
		})
	}
}

func testDebian(t *testing.T, older, newer string) {
	t.Helper()
	c := newChroot(t)
	before := c.files()
	do(t, "/", nil, "cp", newer+".deb", c.path+"/newer.deb")
	// Two settings of the older version differ, of which an administrator changes one.
	do(t, "/", nil, "dpkg-deb", "--raw-extract", older+".deb", c.path+"/older")
	c.sh("cd /older/etc/roomsensor; sed -i '1i # Older.' api.env worker.env; dpkg-deb -Znone --build /older /older.deb; rm -r /older")

	c.sh("dpkg --install /older.deb")
	c.checkInstalled("v0.1.0")
	require.Equal(t, restarts, c.systemctl())
	require.Equal(t, settings, c.sh(showSettings))

	c.sh(`echo LOG_LEVEL=debug >>/etc/roomsensor/api.env
		chmod 644 /etc/roomsensor/api.env
		echo CA >/etc/roomsensor/ca.pem
		mkdir -p /etc/systemd/system/multi-user.target.wants
		ln -s /usr/lib/systemd/system/roomsensor-api.service /etc/systemd/system/multi-user.target.wants/`)
	c.sh("dpkg --force-confold --force-confdef --install /newer.deb")
	require.Equal(t, restarts, c.systemctl())
	require.Contains(t, c.sh("roomsensor version"), "v0.2.0")
	require.Contains(t, c.sh("cat /etc/roomsensor/api.env"), "\nLOG_LEVEL=debug\n", "changes of an administrator stay")
	require.Contains(t, c.sh("head -n 1 /etc/roomsensor/worker.env"), "# The database", "an unchanged file is replaced")
	require.Equal(t, "600\n644\n", c.sh("cd /etc/roomsensor; stat -c %a api.env ca.pem; rm api.env.dpkg-dist"))
	require.Empty(t, strings.ReplaceAll(c.sh("dpkg --verify roomsensor || true"), "??5?????? c /etc/roomsensor/api.env\n", ""))

	c.sh("dpkg --remove roomsensor")
	require.Equal(t, 7, strings.Count(c.systemctl(), "stop roomsensor-"))
	require.Empty(t, c.sh("find /usr -name '*roomsensor*'"))
	require.Contains(t, c.sh("cat /etc/roomsensor/api.env"), "\nLOG_LEVEL=debug\n")
	require.Contains(t, c.sh("ls /etc/roomsensor /etc/systemd/system/multi-user.target.wants"), "ca.pem")

	c.sh("dpkg --install /newer.deb; roomsensor version; dpkg --purge roomsensor")
	require.Contains(t, c.sh("getent passwd roomsensor-api"), "nologin", "the number of a user is never given to another one")
	require.ElementsMatch(t, before, c.files())
}

// testRPM installs with the scripts of the package, but on Debian, where rpm knows no other package.
func testRPM(t *testing.T, older, newer string) {
	t.Helper()
	require.Contains(t, do(t, "/", nil, "rpm", "--checksig", newer+".rpm"), "digests OK")
	require.Contains(t, do(t, "/", nil, "rpm", "--query", "--package", "--requires", newer+".rpm"), "systemd >= 252\n")
	c := newChroot(t)
	// On Fedora, these belong to other packages.
	c.sh("mkdir -p /usr/share/fish/vendor_completions.d /usr/share/licenses /usr/share/zsh/site-functions")
	before := c.files()
	rpm := func(args ...string) {
		require.NotContains(t, c.do(append([]string{"rpm", "--root=" + c.path, "--nodeps"}, args...)...), "failed")
	}
	rpm("--install", older+".rpm")
	c.checkInstalled("v0.1.0")
	require.Equal(t, restarts, c.systemctl())
	require.Equal(t, settings, c.sh(showSettings))

	c.sh("echo LOG_LEVEL=debug >>/etc/roomsensor/api.env")
	rpm("--upgrade", newer+".rpm")
	require.Equal(t, restarts, c.systemctl())
	require.Contains(t, c.sh("roomsensor version"), "v0.2.0")
	require.Contains(t, c.sh("cat /etc/roomsensor/api.env"), "\nLOG_LEVEL=debug\n")

	rpm("--erase", "roomsensor")
	require.Equal(t, 7, strings.Count(c.systemctl(), "stop roomsensor-"))
	left := slices.DeleteFunc(c.files(), func(name string) bool { return slices.Contains(before, name) })
	require.Equal(t, []string{"etc/roomsensor", "etc/roomsensor/api.env.rpmsave"}, left)
}

// testLintian checks the rules of Debian.
func testLintian(t *testing.T, _, newer string) {
	t.Helper()
	out, err := run(t, "/", nil, "lintian", "--allow-root", "--fail-on=error,warning", newer+".deb")
	require.NoError(t, err, out)
}

func testSameBytes(t *testing.T, _, newer string) {
	t.Helper()
	dir := t.TempDir()
	program := "/roomsensor_linux_" + runtime.GOARCH
	require.NoError(t, os.Link(filepath.Dir(newer)+program, dir+program))
	do(t, repository, []string{"ARCHITECTURES=" + runtime.GOARCH}, "deploy/packages/build", dir, "v0.2.0")
	for _, extension := range []string{".deb", ".rpm"} {
		do(t, "/", nil, "cmp", newer+extension, filepath.Join(dir, filepath.Base(newer)+extension))
	}
}

// Versions of packages sort as they were made.
func TestPackageVersion(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("dpkg"); err != nil {
		t.Skip("the order of versions needs dpkg")
	}
	before := "0"
	for _, test := range [][2]string{
		{"04ae391b-dirty", "0.0.0+04ae391b.dirty"},
		{"v0.2.0-rc.1", "0.2.0~rc.1"},
		{"v0.2.0-rc.1-7-g04ae391b", "0.2.0~rc.1+7.g04ae391b"},
		{"v0.2.0", "0.2.0"},
		{"v0.2.0-7-g04ae391b-dirty", "0.2.0+7.g04ae391b.dirty"},
		{"v0.2.0-12-g04ae391b", "0.2.0+12.g04ae391b"},
		{"v0.10.0", "0.10.0"},
	} {
		require.Equal(t, test[1]+"\n", do(t, repository, nil, "deploy/packages/version", test[0]))
		do(t, "/", nil, "dpkg", "--compare-versions", before+"-1", "lt", test[1]+"-1")
		before = test[1]
	}
}
