package alerts

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCommandsOf(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"roomsensor doctor", "SELECT 1 FROM x", "roomsensor rejects list --limit 20", "kubectl get pods", "SELECT 2"},
		commandsOf("Run `roomsensor doctor`, `SELECT 1\n   FROM x`, `roomsensor rejects\nlist --limit 20` or `kubectl get pods`; not `/readyz`.\n\n   ```sql\n   SELECT\n     2;\n   ```\n"))
}

// TestRan checks that a command of a page counts as run with any values, and no other one does.
func TestRan(t *testing.T) {
	t.Parallel()
	e := &env{commands: []string{
		"roomsensor key create --team=Gym --label=replacement", "roomsensor migrate up --database-roles=x",
		"SELECT pg_terminate_backend(17)",
	}}
	for _, command := range []string{
		"roomsensor key create --team TEAM --label replacement", "roomsensor migrate up", "SELECT pg_terminate_backend(PID)",
	} {
		require.True(t, e.ran(command), command)
	}
	require.False(t, e.ran("roomsensor migrate status"))
	require.False(t, e.ran("roomsensor key create --team TEAM --label other"))
}

// Each command that a fault shows is in a runbook of its alerts, or on the page of incidents.
func TestShownCommands(t *testing.T) {
	t.Parallel()
	incidents := commandsOf(readText(t, incidentsPage))
	for _, f := range faults() {
		commands := incidents
		for _, alert := range f.alerts {
			p, err := readPage(root, alert)
			require.NoError(t, err)
			require.NotEmpty(t, p.queries, alert)
			commands = append(commands, p.commands...)
		}
		for shown := range f.shows {
			found := false
			for _, command := range commands {
				found = found || f.replace(command) == shown
			}
			require.True(t, found, "%s: %s", f.alerts, shown)
		}
	}
}
