package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const systemd = "../../deploy/systemd/"

// units returns the paths of the units.
func units(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob(systemd + "system/*.service")
	require.NoError(t, err)
	return paths
}

// values returns the values of a key in a unit, in order.
func values(text []byte, key string) (list []string) {
	for line := range strings.Lines(string(text)) {
		if name, value, found := strings.Cut(strings.TrimSpace(line), "="); found && name == key {
			list = append(list, value)
		}
	}
	return list
}

// The units use only commands and settings that exist, each with its own user and its own secrets.
func TestSystemdUnits(t *testing.T) {
	t.Parallel()
	users := string(readFile(t, systemd+"sysusers.conf"))
	common := readFile(t, systemd+"system/roomsensor-.service.d/common.conf")
	require.Contains(t, users, "\ng "+values(common, "Group")[0]+" ")
	var commands [][]string
	addresses := map[string]string{}
	for _, path := range units(t) {
		unit := readFile(t, path)
		name := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(path), "roomsensor-"), ".service")
		require.Equal(t, []string{"roomsensor-" + name}, values(unit, "User"))
		require.Contains(t, users, "\nu roomsensor-"+name+" ")
		require.Equal(t, []string{"/etc/roomsensor/settings.env", "/etc/roomsensor/" + name + ".env"},
			values(unit, "EnvironmentFile"), "the second may change settings of the first")

		environment := map[string]string{}
		for _, pair := range slices.Concat(values(common, "Environment"), values(unit, "Environment")) {
			variable, value, _ := strings.Cut(pair, "=")
			environment[variable] = value
		}
		own := map[string]bool{} // set for this process alone
		for i, file := range []string{"settings.env", name + ".env"} {
			for line := range strings.Lines(string(readFile(t, systemd+"settings/"+file))) {
				variable, value, found := strings.Cut(strings.TrimSpace(line), "=")
				found = found && line[0] != '#'
				require.True(t, found || line == "\n" || line[0] == '#', line)
				if found {
					environment[variable] = value
					own[variable] = i == 1
				}
			}
		}
		// The file is not on this machine.
		delete(environment, "NATS_CA")
		delete(environment, "MQTT_CA")
		read := map[string]bool{}
		args := strings.Fields(os.Expand(values(unit, "ExecStart")[0], func(variable string) string {
			read[variable] = true
			return environment[variable]
		}))
		require.Equal(t, "roomsensor", args[0], "systemd searches it: in /usr/local/bin, then in /usr/bin of the packages")
		parse(t, args[1:], environment, read)
		for variable := range own {
			// NATS_URL is for operator commands, which use the settings of migrate too.
			ofOperators := name == "migrate" && variable == "NATS_URL"
			require.True(t, !own[variable] || read[variable] || ofOperators, "nothing reads %s of %s", variable, name)
		}
		if address, found := environment["OPS_ADDR"]; found {
			addresses[name] = address
		}
		commands = append(commands, args[1:])
	}
	require.Equal(t, [][]string{
		{"api"},
		{"dashboard"},
		{"migrate", "up"},
		{"mqtt", "--subscribe", "zigbee2mqtt/+=SOURCE_ID"},
		{"notify"},
		{"ingest", "--no-worker"},
		{"ingest", "--no-receiver"},
	}, commands)
	require.Equal(t, map[string]string{"worker": "127.0.0.1:9083"}, addresses, "receiver and worker have one default")
	require.NotContains(t, string(readFile(t, systemd+"settings/settings.env")), "PASSWORD")
}

// systemd accepts the files, creates the users, protects the secrets, and finds the processes well confined.
func TestSystemdAnalyze(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"systemd-analyze", "systemd-sysusers", "systemd-tmpfiles"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("systemd's own checks need %s, of Debian's package systemd", program)
		}
	}
	if version := systemdVersion(t); version < 252 {
		t.Skipf("systemd's own checks of another root need systemd 252, and this is %d", version)
	}
	if os.Getuid() != 0 {
		t.Skip("systemd-tmpfiles needs root to set owners")
	}
	root := t.TempDir()
	for from, to := range map[string]string{
		systemd + "system": "etc/systemd/system", systemd + "settings": "etc/roomsensor", "/lib/systemd/system": "lib/systemd/system",
	} {
		require.NoError(t, os.CopyFS(filepath.Join(root, to), os.DirFS(from)))
	}
	for _, name := range []string{"sysusers", "tmpfiles"} {
		dir := filepath.Join(root, "usr/lib", name+".d")
		require.NoError(t, os.MkdirAll(dir, 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "roomsensor.conf"), readFile(t, systemd+name+".conf"), 0o600))
	}
	require.NoError(t, os.MkdirAll(filepath.Join(root, "usr/local/bin"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(root, "usr/local/bin/roomsensor"), []byte("#!/bin/sh\n"), 0o755))

	run := func(name string, args ...string) string {
		output, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
		require.NoError(t, err, "%s: %s", name, output)
		return string(output)
	}
	run("systemd-sysusers", "--root="+root)
	require.Contains(t, string(readFile(t, filepath.Join(root, "etc/passwd"))), "\nroomsensor-api:")
	run("systemd-tmpfiles", "--root="+root, "--create")
	secret, err := os.Stat(filepath.Join(root, "etc/roomsensor/api.env"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), secret.Mode())
	for _, path := range units(t) {
		installed := filepath.Join(root, "etc/systemd/system", filepath.Base(path))
		require.Empty(t, run("systemd-analyze", "verify", "--root="+root, "--man=no", installed))
		// In tenths of the scale from 0 (confined) to 10. A unit without options has 9.6.
		run("systemd-analyze", "security", "--offline=true", "--threshold=15", "--root="+root, filepath.Base(path))
	}
}

func systemdVersion(t *testing.T) int {
	t.Helper()
	output, err := exec.CommandContext(t.Context(), "systemd-analyze", "--version").Output()
	require.NoError(t, err)
	match := regexp.MustCompile(`^systemd (\d+)`).FindSubmatch(output)
	require.NotNil(t, match, "%s", output)
	version, err := strconv.Atoi(string(match[1]))
	require.NoError(t, err)
	return version
}

// The script for operator commands has the user and the settings of the unit that migrates, and passes its arguments on.
func TestSystemdAdmin(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "systemd-run"), []byte("#!/bin/sh\nprintf '%s\\n' \"$@\"\n"), 0o700))
	cmd := exec.CommandContext(t.Context(), "sh", systemd+"roomsensor-admin", "team", "create", "--name", "Riverside Athletics")
	cmd.Env = []string{"PATH=" + dir + ":" + os.Getenv("PATH")}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	args := strings.Split(strings.TrimSpace(string(out)), "\n")
	unit := readFile(t, systemd+"system/roomsensor-migrate.service")
	require.Contains(t, args, "--property=User="+values(unit, "User")[0])
	for _, file := range values(unit, "EnvironmentFile") {
		require.Contains(t, args, "--property=EnvironmentFile="+file)
	}
	require.Equal(t, []string{"roomsensor", "team", "create", "--name", "Riverside Athletics"}, args[len(args)-5:])
}
