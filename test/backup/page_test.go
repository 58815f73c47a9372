package backup_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The blocks of commands of backup.md, in their order. The drills run each of them.
const (
	archiveLog = iota
	takeBaseBackup
	saveChanges
	restoreBaseBackup
	setUpPgBackRest
	backUpWithPgBackRest
	restoreWithPgBackRest
	endSessions
	checkState
	replayStream
	dump
	restoreDump
	copyStreams
	restoreStreams
	backupBlocks
)

// The first blocks of database-upgrades.md, in their order.
const (
	createServer = iota
	upgradeFiles
	startServer
	goBackBeforeStart
	goBackAfterStart
	switchServers
	grantRoles
	updateExtension
	leaveCommunity
)

var fence = regexp.MustCompile("(?ms)^( *)```sh\n(.*?)^ *```$")

// readPage returns the blocks of commands of backup.md.
func readPage(t *testing.T) []string {
	t.Helper()
	commands := shellBlocks(t, "backup.md")
	require.Len(t, commands, backupBlocks, "name a new block above, and run it in a drill")
	return commands
}

func shellBlocks(t *testing.T, page string) (commands []string) {
	t.Helper()
	text, err := os.ReadFile("../../docs/operate/" + page)
	require.NoError(t, err)
	for _, match := range fence.FindAllStringSubmatch(string(text), -1) {
		commands = append(commands, strings.ReplaceAll("\n"+match[2], "\n"+match[1], "\n")) // In a list it is indented.
	}
	return commands
}
