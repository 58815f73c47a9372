package main

import (
	"encoding/json"
	"io"
	"maps"
	"os"
	"regexp"
	"strings"
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

// composeFile reads a file of Compose, with what it puts in for variables that
// are not set.
func composeFile(t *testing.T, path string) map[string]composeService {
	t.Helper()
	var file struct{ Services map[string]composeService }
	require.NoError(t, yaml.Unmarshal(fallback.ReplaceAll(readFile(t, path), []byte("$1")), &file))
	return file.Services
}

// fallback is what Compose puts in for ${NAME:-fallback} without the variable.
var fallback = regexp.MustCompile(`\$\{\w+:-([^}]*)\}`)

// The processes of docker-compose.yml.
var composed = []string{"migrate", "api", "receiver", "ingest"}

// ofOthers are variables that the program itself does not look at: the driver
// of the database does, and Go's runtime.
var ofOthers = map[string]bool{"PGPASSWORD": true, "GOMEMLIMIT": true}

// The compose file starts commands that exist, with settings that they have.
func TestComposeFileMatchesTheCommands(t *testing.T) {
	t.Parallel()
	services := composeFile(t, "../../docker-compose.yml")
	for _, name := range []string{"timescaledb", "nats"} {
		require.NotEmpty(t, services[name].HealthCheck.Test, name)
	}
	read := map[string]bool{}
	for _, name := range composed {
		service := services[name]
		parse(t, service.Command, service.Environment, read)
		require.Equal(t, name == "migrate", service.HealthCheck.Disable, "%s has the image's check, or ends by itself", name)
	}
	for variable := range services["api"].Environment { // The same for all.
		require.True(t, read[variable] || ofOthers[variable], "nothing reads %s", variable)
	}
}

// What a trial gets by default must be given in production, every secret first of all.
func TestComposeFileForProductionHasNoDefaults(t *testing.T) {
	t.Parallel()
	trial := composeFile(t, "../../docker-compose.yml")
	production := composeFile(t, "../../deploy/compose.production.yml")
	const secret = "roomsensor"
	require.Equal(t, secret, trial["timescaledb"].Environment["POSTGRES_PASSWORD"])
	demanded := regexp.MustCompile(`\$\{(\w+):\?Set (\w+)\b`)
	for name, service := range trial {
		for variable, value := range service.Environment {
			own, given := production[name].Environment[variable]
			switch {
			case given:
				match := demanded.FindStringSubmatch(own)
				require.NotNil(t, match, "%s must demand %s", name, variable)
				require.Equal(t, match[1], match[2])
			default:
				require.NotContains(t, variable, "PASSWORD", name)
				require.NotContains(t, value, ":"+secret+"@", name)
			}
		}
	}
}

// The image serves and is looked at on the addresses that it sets.
func TestDockerfileMatchesTheCommands(t *testing.T) {
	t.Parallel()
	text := strings.ReplaceAll(string(readFile(t, "../../Dockerfile")), "\\\n", "")
	_, image, found := strings.Cut(text, "\nFROM scratch\n")
	require.True(t, found)
	environment := map[string]string{}
	for pair := range strings.FieldsSeq(instruction(t, image, "ENV")) {
		name, value, _ := strings.Cut(pair, "=")
		environment[name] = value
	}
	var check []string
	_, command, _ := strings.Cut(instruction(t, image, "HEALTHCHECK"), " CMD ")
	require.NoError(t, json.Unmarshal([]byte(command), &check))
	require.Equal(t, "/roomsensor", check[0])
	read := map[string]bool{}
	parse(t, check[1:], environment, read)
	require.True(t, read["OPS_ADDR"])
	url := map[string]string{"DATABASE_URL": "postgres://host/name", "NATS_URL": "nats://host"}
	maps.Copy(url, environment)
	parse(t, []string{"api"}, url, read)
	parse(t, []string{"ingest"}, url, read)
	for variable := range environment {
		require.True(t, read[variable], "nothing reads %s", variable)
	}
	require.Regexp(t, `^\d+:\d+$`, instruction(t, image, "USER"), "a number, which Kubernetes knows not to be root")
	require.NotRegexp(t, `(?m)^RUN --mount|<<`, text, "needs BuildKit")
}

// The Go that builds the image can build this module.
func TestDockerfileHasTheGoOfTheModule(t *testing.T) {
	t.Parallel()
	module := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindSubmatch(readFile(t, "../../go.mod"))
	require.Contains(t, string(readFile(t, "../../Dockerfile")), "\nFROM golang:"+string(module[1])+" AS build\n")
}

// instruction is what stands behind the one instruction of a kind.
func instruction(t *testing.T, dockerfile, kind string) string {
	t.Helper()
	found := regexp.MustCompile(`(?m)^`+kind+` (.*)$`).FindAllStringSubmatch(dockerfile, -1)
	require.Len(t, found, 1, kind)
	return found[0][1]
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return text
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
