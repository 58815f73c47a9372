package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"roomsensor/internal/cli"
	"roomsensor/internal/config"
	"roomsensor/internal/queue"
	"roomsensor/test/clitest"
	"roomsensor/test/tlstest"
)

type composeService struct {
	Command     composeCommand
	Environment map[string]string
	HealthCheck struct {
		Test    []string
		Disable bool
	}
}

// composeCommand is a list of arguments, or a text that Compose splits at spaces.
type composeCommand []string

func (c *composeCommand) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind == yaml.ScalarNode {
		*c = strings.Fields(node.Value)
		return nil
	}
	return node.Decode((*[]string)(c))
}

// composeFile parses a Compose file. Variables have their fallback values.
func composeFile(t *testing.T, path string) map[string]composeService {
	t.Helper()
	var file struct{ Services map[string]composeService }
	require.NoError(t, yaml.Unmarshal(fallback.ReplaceAll(readFile(t, path), []byte("$1")), &file))
	return file.Services
}

// fallback matches ${NAME:-fallback}, which Compose replaces by the fallback if NAME is not set.
var fallback = regexp.MustCompile(`\$\{\w+:-([^}]*)\}`)

// composed are the services of docker-compose.yml that run the program.
var composed = []string{"migrate", "api", "dashboard", "notify", "receiver", "ingest", "mqtt"}

// libraryVariables are read by the database driver and by the Go runtime, not by the program.
var libraryVariables = map[string]bool{"PGPASSWORD": true, "GOMEMLIMIT": true}

// The Compose file uses only commands and settings that exist.
func TestComposeFile(t *testing.T) {
	t.Parallel()
	services := composeFile(t, "../../docker-compose.yml")
	for _, name := range []string{"timescaledb", "nats"} {
		require.NotEmpty(t, services[name].HealthCheck.Test, name)
	}
	read := map[string]bool{}
	for _, name := range composed {
		service := services[name]
		if name == "mqtt" { // With its profile, people set MQTT_ARGS and MQTT_URL.
			service.Command = append(service.Command, "--subscribe", "zigbee2mqtt/+=SOURCE_ID")
			service.Environment["MQTT_URL"] = "mqtt://host"
		}
		parse(t, service.Command, service.Environment, read)
		require.Equal(t, name == "migrate", service.HealthCheck.Disable, "%s uses the health check of the image, or exits by itself", name)
	}
	for _, name := range composed {
		for variable := range services[name].Environment {
			require.True(t, read[variable] || libraryVariables[variable], "nothing reads %s", variable)
		}
	}
}

// Links follow the port on which the API is published: those of the API by themselves, those of the receiver by its
// setting. A fallback within a fallback would be shorter, but docker-compose 1.29 does not read it.
func TestComposeLinks(t *testing.T) {
	t.Parallel()
	services := composeFile(t, "../../docker-compose.yml")
	require.Empty(t, services["api"].Environment["PUBLIC_URL"])
	require.Equal(t, "127.0.0.1:8080", services["receiver"].Environment["API_ADDR"])
	require.Regexp(t, `(?m)^      API_ADDR: (127\.0\.0\.1:\$\{API_PORT:-8080\})$`, string(readFile(t, "../../docker-compose.yml")))
	require.Contains(t, string(readFile(t, "../../docker-compose.yml")), `- "127.0.0.1:${API_PORT:-8080}:8080"`)
}

// The production file requires each value for which the development file has a default, secrets above all.
func TestProductionComposeFile(t *testing.T) {
	t.Parallel()
	development := composeFile(t, "../../docker-compose.yml")
	production := composeFile(t, "../../deploy/compose.production.yml")
	const secret = "roomsensor"
	require.Equal(t, secret, development["timescaledb"].Environment["POSTGRES_PASSWORD"])
	required := regexp.MustCompile(`\$\{(\w+):\?Set (\w+)\b`)
	for name, service := range development {
		for variable, value := range service.Environment {
			own, given := production[name].Environment[variable]
			switch {
			case variable == "DATABASE_URL":
				require.Contains(t, own, "?sslmode=verify-full&sslrootcert=", name)
			case variable == "DRAIN_DELAY":
				require.Equal(t, "5s", own, name)
			case given:
				require.False(t, strings.HasPrefix(own, "nats://"), name)
				match := required.FindStringSubmatch(own)
				require.NotNil(t, match, "%s must require %s", name, variable)
				require.Equal(t, match[1], match[2])
			default:
				require.NotContains(t, variable, "PASSWORD", name)
				require.NotContains(t, value, ":"+secret+"@", name)
			}
		}
	}
}

// The image uses only settings that exist, and its health check uses the address that it sets.
func TestDockerfile(t *testing.T) {
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
	parse(t, []string{"dashboard"}, url, read)
	for variable := range environment {
		require.True(t, read[variable], "nothing reads %s", variable)
	}
	require.Regexp(t, `^\d+:\d+$`, instruction(t, image, "USER"), "Kubernetes can only check that a numeric user is not root")
	require.NotRegexp(t, `(?m)^RUN --mount|<<`, text, "it must build without BuildKit")
}

// The image is built with the Go version of the module.
func TestDockerfileGoVersion(t *testing.T) {
	t.Parallel()
	module := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindSubmatch(readFile(t, "../../go.mod"))
	require.Contains(t, string(readFile(t, "../../Dockerfile")), "\nFROM golang:"+string(module[1])+" AS build\n")
}

// instruction returns the arguments of the only instruction of a kind.
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

// parse parses a command line as the program does, and adds the variables that it reads to read. A person replaces
// SOURCE_ID by the id of a source.
func parse(t *testing.T, args []string, environment map[string]string, read map[string]bool) {
	t.Helper()
	args = slices.Clone(args)
	for i, arg := range args {
		args[i] = strings.ReplaceAll(arg, "SOURCE_ID", "6fa459ea-ee8a-4ca4-894e-db77e160355e")
	}
	clitest.Parse(t, program(), args, environment, read)
}

type manifest struct {
	Kind string
	Spec struct {
		Template struct {
			Spec struct{ Containers []manifestContainer }
		}
		Triggers []struct{ Metadata map[string]string }
	}
}

type manifestContainer struct {
	Args []string
	Env  []struct{ Name, Value string }
}

// manifestFile parses the documents of a file.
func manifestFile(t *testing.T, path string) (documents []manifest) {
	t.Helper()
	decoder := yaml.NewDecoder(bytes.NewReader(readFile(t, path)))
	for {
		var document manifest
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			return documents
		}
		require.NoError(t, err, path)
		documents = append(documents, document)
	}
}

// glob finds files under deploy/kubernetes.
func glob(t *testing.T, pattern string) []string {
	t.Helper()
	paths, err := filepath.Glob("../../deploy/kubernetes/" + pattern)
	require.NoError(t, err)
	require.NotEmpty(t, paths, pattern)
	return paths
}

// settings reads the files that configure the pods.
func settings(t *testing.T) map[string]string {
	t.Helper()
	read := map[string]string{}
	for _, path := range glob(t, "*/settings.env") {
		for line := range strings.Lines(string(readFile(t, path))) {
			name, value, found := strings.Cut(strings.TrimSpace(line), "=")
			require.True(t, found || strings.HasPrefix(line, "#"), line)
			if found {
				read[name] = value
			}
		}
	}
	return read
}

// The manifests use only commands and settings that exist.
func TestManifests(t *testing.T) {
	t.Parallel()
	environment := settings(t)
	var commands [][]string
	for _, path := range glob(t, "*/*.yaml") {
		for _, document := range manifestFile(t, path) {
			for _, container := range document.Spec.Template.Spec.Containers {
				for _, variable := range container.Env {
					environment[variable.Name] = variable.Value
				}
				if len(container.Args) > 0 {
					commands = append(commands, container.Args)
				}
			}
		}
	}
	// Secrets provide them in a cluster.
	environment["DATABASE_URL"], environment["NATS_URL"] = "postgres://host/name", "nats://host"
	environment["SMTP_URL"], environment["MAIL_FROM"] = "smtp://host", "rooms@example.com"
	environment["MQTT_URL"] = "mqtt://host"
	environment["NATS_CA"] = tlstest.New(t).CA
	environment["MQTT_CA"] = environment["NATS_CA"]
	slices.SortFunc(commands, slices.Compare)
	require.Equal(t, [][]string{
		{"api"},
		{"dashboard"},
		{"ingest", "--no-receiver"},
		{"ingest", "--no-worker"},
		{"migrate", "up"},
		{"mqtt", "--subscribe", "zigbee2mqtt/+=SOURCE_ID"},
		{"notify"},
	}, commands)
	read := map[string]bool{}
	for _, command := range commands {
		parse(t, command, environment, read)
	}
	for variable := range environment {
		require.True(t, read[variable] || libraryVariables[variable], "nothing reads %s", variable)
	}
}

// The autoscaler watches the consumer that the workers share.
func TestAutoscaler(t *testing.T) {
	t.Parallel()
	scaled := manifestFile(t, "../../deploy/kubernetes/keda/scaledobject.yaml")[0]
	require.Equal(t, "ScaledObject", scaled.Kind)
	metadata := scaled.Spec.Triggers[0].Metadata
	require.Equal(t, queue.StreamName, metadata["stream"])
	require.Equal(t, queue.ConsumerName, metadata["consumer"])
}

// TestConfigurationPage checks that the page lists every setting, and nothing else, each with its commands.
func TestConfigurationPage(t *testing.T) {
	t.Parallel()
	users := map[string][]string{"OTEL_TRACES_SAMPLER": nil, "OTEL_TRACES_SAMPLER_ARG": nil} // The SDK reads them.
	parser, err := program().Parser(&cli.Terminal{Stdout: io.Discard, Stderr: io.Discard})
	require.NoError(t, err)
	for _, command := range parser.Model.Leaves(false) {
		for _, flag := range command.Flags {
			if flag.Tag.Has("setting") {
				name := config.Variable(flag.Name)
				users[name] = append(users[name], strings.TrimPrefix(command.Path(), "roomsensor "))
			}
		}
	}
	listed := map[string][]string{}
	for line := range strings.Lines(string(readFile(t, "../../docs/operate/configuration.md"))) {
		if cells := strings.Split(line, "|"); len(cells) > 3 {
			for _, name := range quotedWords(cells[1]) {
				listed[name] = quotedWords(cells[3])
				if strings.Contains(cells[3], "all") {
					listed[name] = users[name]
				}
			}
		}
	}
	require.ElementsMatch(t, slices.Collect(maps.Keys(users)), slices.Collect(maps.Keys(listed)))
	for name, commands := range users {
		for _, command := range commands {
			require.True(t, slices.ContainsFunc(listed[name], func(group string) bool {
				return strings.HasPrefix(command+" ", group+" ")
			}), "%s has %s", command, name)
		}
	}
}

// quotedWords returns the texts in backticks.
func quotedWords(markdown string) (all []string) {
	for _, found := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(markdown, -1) {
		all = append(all, found[1])
	}
	return all
}

// The block for production writes a file .env once, with every value that the production file requires, and with which
// all later commands of Compose use both files.
func TestProductionEnvironment(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Skip("the passwords of the production environment need openssl")
	}
	text := string(readFile(t, "../../docs/operate/containers.md"))
	_, block, found := strings.Cut(text, "```sh\ndeploy/certificates")
	require.True(t, found)
	block, _, _ = strings.Cut("deploy/certificates"+block, "\n```")
	dir := t.TempDir()
	for name, script := range map[string]string{"deploy/certificates": "true", "docker": `echo "$@" >>compose.log`} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o700))
	}
	var before []byte
	for range 2 {
		cmd := exec.CommandContext(t.Context(), "bash", "-c", block)
		cmd.Dir, cmd.Env = dir, []string{"PATH=" + dir + ":" + os.Getenv("PATH")}
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		after, err := os.ReadFile(filepath.Join(dir, ".env"))
		require.NoError(t, err)
		if before != nil {
			require.Equal(t, string(before), string(after), "the second time changes nothing")
		}
		before = after
	}
	for _, match := range regexp.MustCompile(`\$\{(\w+):\?`).FindAllSubmatch(readFile(t, "../../deploy/compose.production.yml"), -1) {
		require.Regexp(t, `(?m)^`+string(match[1])+`=.+$`, string(before))
	}
	require.Contains(t, string(before), "\nCOMPOSE_FILE=docker-compose.yml:deploy/compose.production.yml\n")
	require.Equal(t, "compose up -d\ncompose up -d\n", string(readFile(t, filepath.Join(dir, "compose.log"))))
}
