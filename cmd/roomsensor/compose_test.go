package main

import (
	"io"
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

type composeService struct {
	Command     []string
	Environment map[string]string
	HealthCheck struct {
		Test    []string
		Disable bool
	}
}

// fallback is what Compose puts in for ${NAME:-fallback} without the variable.
var fallback = regexp.MustCompile(`\$\{\w+:-([^}]*)\}`)

// The compose file starts commands that exist, with settings that they have.
func TestComposeFileMatchesTheCommands(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docker-compose.yml")
	require.NoError(t, err)
	var file struct{ Services map[string]composeService }
	require.NoError(t, yaml.Unmarshal(fallback.ReplaceAll(text, []byte("$1")), &file))

	for _, name := range []string{"timescaledb", "nats"} {
		require.NotEmpty(t, file.Services[name].HealthCheck.Test, name)
	}
	read := map[string]bool{}
	for _, name := range []string{"migrate", "api", "receiver", "ingest"} {
		service := file.Services[name]
		parse(t, service.Command, service.Environment, read)
		if !service.HealthCheck.Disable {
			require.Equal(t, []string{"CMD", "/roomsensor"}, service.HealthCheck.Test[:2], name)
			parse(t, service.HealthCheck.Test[2:], service.Environment, read)
		}
	}
	for variable := range file.Services["api"].Environment {
		require.True(t, read[variable], "nothing reads %s", variable)
	}
}

// parse reads a command line as the program does, and notes which variables it
// looks at.
func parse(t *testing.T, args []string, environment map[string]string, read map[string]bool) {
	t.Helper()
	terminal := &terminal{stdout: io.Discard, stderr: io.Discard, getenv: func(variable string) string {
		read[variable] = true
		return environment[variable]
	}}
	parser, err := terminal.parser()
	require.NoError(t, err)
	_, err = parser.Parse(args)
	require.NoError(t, err, "%v", args)
}
