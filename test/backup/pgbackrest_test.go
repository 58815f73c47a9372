package backup_test

import (
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/dev/postgres/debian"
	"roomsensor/internal/roomsensor"
	"roomsensor/test/conformance"
	"roomsensor/test/dbtest"
)

// TestPgBackRest restores to a moment with pgBackRest, twice: the first moment is too early. It takes half a minute.
func TestPgBackRest(t *testing.T) {
	t.Parallel()
	conformance.NeedsMachine(t, "pgBackRest")
	programs, err := dbtest.DebianPrograms("pgbackrest", debian.PgBackRest)
	if err != nil {
		t.Skipf("needs pgBackRest: %v", err)
	}
	e := newEnv(t)
	e.configurePgBackRest(programs[0])
	e.step(e.account, "set pgBackRest up", setUpPgBackRest)
	e.newFleet()
	e.startAPIAndWorker()
	e.startReceiver()
	d := e.begin(3)
	e.step(e.account, "back up", backUpWithPgBackRest)
	exported, err := os.ReadFile(e.variables["TEXTFILE"])
	require.NoError(t, err)
	require.Regexp(t, `^pgbackrest_last_backup_timestamp_seconds 1[0-9]{9}\n$`, string(exported))
	e.awaitMore()
	tooEarly := e.clock()
	e.awaitMore()
	moment := e.clock()
	e.awaitMore()
	before := e.readings()
	e.archiveSegment()

	e.Logf("lose the data directory")
	e.shell(e.account, `pg_ctl stop --pgdata="$PGDATA" --mode=immediate --silent; rm -r "$PGDATA/base"`)
	e.stop("api", "worker")
	e.variables["RESTORE_TO"] = roomsensor.FormatTime(tooEarly)
	e.step(e.account, "restore", restoreWithPgBackRest)
	early := e.readings()
	var one int
	e.value(&one, "INSERT INTO streams VALUES ('of the first attempt', now()) RETURNING 1")
	e.archiveSegment()
	e.variables["RESTORE_TO"] = roomsensor.FormatTime(moment)
	e.step(e.account, "restore again", restoreWithPgBackRest)
	require.Greater(t, e.readings(), early)
	d.afterRestore(before, func() {})
	d.finish()
}

// configurePgBackRest writes the configuration of the page with the directories of the drill.
func (e *env) configurePgBackRest(program string) {
	e.t.Helper()
	page, err := os.ReadFile("../../docs/operate/backup.md")
	require.NoError(e.t, err)
	_, text, found := strings.Cut(string(page), "```ini\n")
	require.True(e.t, found)
	text, _, _ = strings.Cut(text, "```")
	server, err := url.Parse(e.variables["DATABASE_URL"])
	require.NoError(e.t, err)
	password, _ := server.User.Password()
	socket := filepath.Join(e.variables["BACKUP"], "socket")
	for name, value := range map[string]string{
		"repo1-path": filepath.Join(e.variables["BACKUP"], "repository"), "pg1-path": e.variables["PGDATA"],
		"pg1-socket-path": socket, "pg1-port": server.Port(), "pg1-user": server.User.Username(),
		"pg1-database": strings.TrimPrefix(server.Path, "/"),
	} {
		line := regexp.MustCompile(`(?m)^` + name + `=.*$`)
		require.Regexp(e.t, line, text)
		text = line.ReplaceAllString(text, name+"="+value)
	}
	// These have no place in the package's own directories, which belong to root.
	text = strings.Replace(text, "[global]\n", "[global]\nlog-level-file=off\nlock-path="+e.variables["BACKUP"]+"\n", 1)
	config := filepath.Join(e.variables["BACKUP"], "pgbackrest.conf")
	require.NoError(e.t, os.WriteFile(config, []byte(text), 0o600)) //nolint:gosec // In a directory of the drill.
	require.NoError(e.t, os.Mkdir(socket, 0o700))
	require.NoError(e.t, e.account.Own(config, socket))
	e.variables["PGBACKREST_CONFIG"], e.variables["PGPASSWORD"] = config, password
	e.variables["TEXTFILE"] = filepath.Join(e.variables["BACKUP"], "backup.prom")
	e.variables["PATH"] = filepath.Dir(program) + ":" + e.variables["PATH"]
	e.shell(e.account, `psql "$DATABASE_URL" --command="ALTER SYSTEM SET unix_socket_directories = '$SOCKET'"
pg_ctl restart --pgdata="$PGDATA" --log="$PGLOG" --wait --silent`, "SOCKET="+socket)
}
