package backup_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The blocks of commands of the page, in their order. The drills run each of them.
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
	blocks
)

var fence = regexp.MustCompile("(?ms)^( *)```sh\n(.*?)^ *```$")

// readPage returns the blocks of commands of the page.
func readPage(t *testing.T) (commands []string) {
	t.Helper()
	text, err := os.ReadFile("../../docs/operate/backup.md")
	require.NoError(t, err)
	for _, match := range fence.FindAllStringSubmatch(string(text), -1) {
		commands = append(commands, strings.ReplaceAll("\n"+match[2], "\n"+match[1], "\n")) // In a list it is indented.
	}
	require.Len(t, commands, blocks, "name a new block above, and run it in a drill")
	return commands
}
