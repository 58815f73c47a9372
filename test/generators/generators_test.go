package generators_test

import (
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"roomsensor/docs"
	"roomsensor/test/apitest"
	"roomsensor/test/harness"
	"roomsensor/test/openapitest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestClient calls every operation through a generated client, which must lose nothing of a response.
func TestClient(t *testing.T) {
	t.Parallel()
	device := harness.Device{ID: uuid.New(), HardwareID: "dev:1", Name: "Weight room", Metadata: map[string]string{"floor": "2"}}
	s := apitest.Start(t, device, harness.Device{ID: uuid.New(), HardwareID: "dev:2", Name: "Spare"})
	s.Exec(t, `INSERT INTO readings (device_id, bucket_at, co2_ppm, temp_c)
		SELECT $1, time_bucket('5 minutes', now()) - i * INTERVAL '5 minutes', 400.5 + i, 21.4 FROM generate_series(1, 20) i`, device.ID)
	s.Exec(t, `INSERT INTO assignments (device_id, type, label, home_or_travel, started_at)
		VALUES ($1, 'place', 'Weight room', 'home', now() - INTERVAL '1 day')`, device.ID)
	withHead, err := docs.OpenAPI30WithHead()
	require.NoError(t, err)
	for name, document := range map[string][]byte{
		"served":    download(t, s.URL+"/docs/openapi-3.0.json"),
		"with HEAD": withHead, // Generators that read 3.1 see HEAD too.
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			calls := callAll(t, document, s.URL+"/v1", s.NewKey(t), device.ID.String())
			var called []string
			for _, line := range calls {
				operation, ok := strings.CutPrefix(line, "ok ")
				require.True(t, ok, "%s\nof %s", line, strings.Join(calls, "\n"))
				called = append(called, strings.ReplaceAll(operation, device.ID.String(), "{device_id}"))
			}
			var expected []string
			for _, operation := range openapitest.API().Operations() {
				if name == "with HEAD" || !strings.HasPrefix(operation, "HEAD ") {
					expected = append(expected, strings.Replace(operation, " ", " /v1", 1))
				}
			}
			require.ElementsMatch(t, expected, called)
		})
	}
}

func download(t *testing.T, url string) []byte {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusOK, response.StatusCode)
	return text
}

// callAll generates a client from a document, and returns a line per operation that the program in testdata prints.
func callAll(t *testing.T, document []byte, arguments ...string) []string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS("testdata/caller")))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "generated"), 0o755))
	openAPI := filepath.Join(dir, "openapi.json")
	require.NoError(t, os.WriteFile(openAPI, document, 0o600))
	run(t, "../..", "go", "tool", "-modfile=tools/go.mod", "oapi-codegen", "-generate", "types,client",
		"-package", "generated", "-o", filepath.Join(dir, "generated", "client.gen.go"), openAPI)
	out := run(t, dir, "go", append([]string{"run", "."}, arguments...)...)
	return strings.Split(strings.TrimSpace(out), "\n")
}

// run returns what a command prints. Without C, the build cache of the product is the same as elsewhere.
func run(t *testing.T, dir, program string, arguments ...string) string {
	t.Helper()
	command := exec.CommandContext(context.WithoutCancel(t.Context()), program, arguments...)
	command.Dir, command.Env = dir, append(os.Environ(), "CGO_ENABLED=0")
	var stderr strings.Builder
	command.Stderr = &stderr
	out, err := command.Output()
	require.NoError(t, err, "%s %s", out, &stderr)
	return string(out)
}
