package main

import (
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"roomsensor/internal/queue"
)

// What the manifests must agree on with the program. What they must agree on
// with Kubernetes and with one another is in deploy/kubernetes/check.

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

// manifestFile reads the documents of a file.
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

// settings reads the files from which the settings of the pods are made.
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

// The pods start commands that exist, with settings that they have.
func TestManifestsMatchTheCommands(t *testing.T) {
	t.Parallel()
	environment := settings(t)
	var commands [][]string
	for _, path := range glob(t, "base/*.yaml") {
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
	// By secrets, which are not there.
	environment["DATABASE_URL"], environment["NATS_URL"] = "postgres://host/name", "nats://host"
	slices.SortFunc(commands, slices.Compare)
	require.Equal(t, [][]string{
		{"api"}, {"ingest", "--no-receiver"}, {"ingest", "--no-worker"}, {"migrate", "up"},
	}, commands)
	read := map[string]bool{}
	for _, command := range commands {
		parse(t, command, environment, read)
	}
	for variable := range environment {
		require.True(t, read[variable] || ofOthers[variable], "nothing reads %s", variable)
	}
}

// The autoscaler looks at the consumer that the workers share.
func TestAutoscalerLooksAtTheConsumer(t *testing.T) {
	t.Parallel()
	scaled := manifestFile(t, "../../deploy/kubernetes/keda/scaledobject.yaml")[0]
	require.Equal(t, "ScaledObject", scaled.Kind)
	metadata := scaled.Spec.Triggers[0].Metadata
	require.Equal(t, queue.StreamName, metadata["stream"])
	require.Equal(t, queue.ConsumerName, metadata["consumer"])
}
