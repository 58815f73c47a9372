package samples_test

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/client"
	"roomsensor/internal/admin"
	"roomsensor/internal/config"
	"roomsensor/internal/roomsensor"
	"roomsensor/test/apitest"
	"roomsensor/test/dbtest"
	"roomsensor/test/demotest"
)

// everything says that no sample may be skipped. `go tool task samples` sets it.
var everything = os.Getenv("ROOMSENSOR_SAMPLES") == "all"

// unpackaged are modules that Debian does not package. A sample that needs one runs where it is installed.
var unpackaged = []string{"pyarrow"}

// receiverAddress is the address of the receiver in the pages.
const receiverAddress = "http://127.0.0.1:8081"

// env is a demo whose data does not change, except by the samples.
type env struct {
	api, receiver      string
	database           string
	team               uuid.UUID
	key, ingest        string
	device, hardwareID string
}

// setup starts a demo with six days of history: two pages of readings for each device.
func setup(t *testing.T) *env {
	t.Helper()
	options := demotest.Options(t, dbtest.Empty(t).URL)
	options.Every = 24 * time.Hour
	d := demotest.Start(t, options)
	e := &env{
		api: strings.TrimSuffix(d.Value(t, "Base URL"), "/v1"), receiver: strings.TrimSuffix(d.Value(t, "Uploads"), "/uploads"),
		database: options.DatabaseURL, key: d.Value(t, "Read-write key"), ingest: d.Value(t, "Ingest key"),
	}
	e.findDevice(t)
	return e
}

// withOwnKey returns the environment with another key. Samples at the same time would share the exports of one key.
func (e *env) withOwnKey(t *testing.T) *env {
	t.Helper()
	o, err := admin.Open(t.Context(), config.Database{DatabaseURL: config.Secret(e.database)})
	require.NoError(t, err)
	defer o.Close()
	key, err := o.CreateAPIKey(t.Context(), roomsensor.Key{TeamID: e.team, Scope: roomsensor.ScopeReadWrite})
	require.NoError(t, err)
	own := *e
	own.key = key.Key
	return &own
}

// findDevice finds the team, and chooses a device of it with readings and an assignment.
func (e *env) findDevice(t *testing.T) {
	t.Helper()
	c, err := client.New(e.api, e.key)
	require.NoError(t, err)
	team, err := c.Team(t.Context())
	require.NoError(t, err)
	e.team = team.Team.ID
	for device, err := range c.Devices(t.Context(), client.DeviceQuery{}) {
		require.NoError(t, err)
		if device.DisplayName != nil && *device.DisplayName == "Weight room" {
			e.device, e.hardwareID = device.DeviceID.String(), device.HardwareID
		}
	}
	require.NotEmpty(t, e.device)
}

// values replaces the placeholders, as the form on the pages does. The samples use the API at an address with a key.
func (e *env) values(api, receiver, key, ingest string) *strings.Replacer {
	return strings.NewReplacer(
		"http://127.0.0.1:8080", api, receiverAddress, receiver, "YOUR_API_KEY", key, "YOUR_INGEST_KEY", ingest,
		"YOUR_DEVICE_ID", e.device, "YOUR_HARDWARE_ID", e.hardwareID,
	)
}

// through replaces the placeholders so that the sample uses a proxy of the service that it calls.
func (e *env) through(t *testing.T, s *sample, f apitest.Faults) *strings.Replacer {
	t.Helper()
	if strings.Contains(s.code, receiverAddress) {
		return e.values(e.api, apitest.Proxy(t, e.receiver, f), e.key, e.ingest)
	}
	return e.values(apitest.Proxy(t, e.api, f), e.receiver, e.key, e.ingest)
}

func TestSamples(t *testing.T) {
	t.Parallel()
	samples := runnable(t)
	programs := buildProgram(t, samples)
	e := setup(t)
	t.Run("clients/python", e.checkPythonClient) // Before the samples write.
	for _, s := range samples {
		s.programs = programs
		t.Run(fmt.Sprintf("%s/%s/%d", s.page, s.language, s.number), func(t *testing.T) {
			t.Parallel()
			e.withOwnKey(t).check(t, &s)
		})
	}
	for name, check := range map[string]func(*testing.T){
		"Grafana": e.checkGrafana, "missing nights": e.checkMissingNights, "formula": e.checkFormula,
	} {
		t.Run("guides/recipes.md/"+name, func(t *testing.T) {
			t.Parallel()
			check(t)
		})
	}
}

// checkPythonClient runs the tests of the Python client.
func (e *env) checkPythonClient(t *testing.T) {
	if !everything {
		t.Skip("`go tool task samples` tests the Python client")
	}
	own := e.withOwnKey(t)
	tests := exec.CommandContext(t.Context(), python(), "-m", "unittest", "--verbose")
	tests.Dir = pythonClient(t)
	tests.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1", "ROOMSENSOR_URL="+own.api, "ROOMSENSOR_API_KEY="+own.key,
		"INGEST_URL="+own.receiver, "INGEST_KEY="+own.ingest)
	out, err := tests.CombinedOutput()
	require.NoError(t, err, "%s", out)
	t.Logf("%s", out)
}

// runnable returns the samples for which this machine has an interpreter.
func runnable(t *testing.T) (found []sample) {
	t.Helper()
	languages := map[string]bool{}
	for _, s := range allSamples(t) {
		if !everything && s.language != "bash" {
			continue
		}
		languages[s.language] = true
		missing := s.missing(t)
		if slices.Contains(unpackaged, missing) {
			t.Logf("%s: a sample for %s needs %s, which Debian does not package", s.page, s.language, missing)
			continue
		}
		if missing != "" {
			require.False(t, everything, "%s: %s needs %s", s.page, s.language, missing)
			t.Skip("the samples need " + missing)
		}
		found = append(found, s)
	}
	if everything {
		require.Len(t, languages, len(interpreters))
	} else {
		t.Log("only the samples for bash; `go tool task samples` runs all of them")
	}
	return found
}

// check runs a sample with and without faults.
func (e *env) check(t *testing.T, s *sample) {
	t.Helper()
	whole := s.run(t, e.values(e.api, e.receiver, e.key, e.ingest))
	require.Zero(t, whole.code, "%s\n%s\n%s", s.code, whole.stdout, whole.stderr)
	require.NotEmpty(t, whole.stdout+strings.Join(keys(whole.files), ""), s.code)

	// A wrong key, which the samples send in different ways, is an error in each of them.
	refused := s.run(t, e.values(e.api, e.receiver, mistype(e.key), mistype(e.ingest)))
	require.NotZero(t, refused.code, "a wrong key:\n%s\n%s\n%s", s.code, refused.stdout, refused.stderr)
	said := refused.stdout + refused.stderr + strings.Join(contents(refused.files), "")
	if !strings.Contains(s.code, "curl -sSI") { // A response to HEAD has no message.
		require.Regexp(t, "checksum is wrong|is not a complete API key", said, s.code) // The API, or the program.
	}
	if s.retries {
		e.checkFaults(t, s, &whole)
	}
}

// checkFaults checks that a sample retries after 429 and the failures of a proxy, and does not take a part of the data
// for the whole.
func (e *env) checkFaults(t *testing.T, s *sample, whole *result) {
	t.Helper()
	third := cut
	if s.language == "bash" { // curl --retry does not repeat it, and reports it.
		third = func(_ int64, w http.ResponseWriter, _ *http.Request) bool {
			return html(w, http.StatusServiceUnavailable)
		}
	}
	retried := s.run(t, e.through(t, s, busy(third)))
	require.Zero(t, retried.code, "429 and a proxy:\n%s\n%s\n%s", s.code, retried.stdout, retried.stderr)
	require.Equal(t, strings.Count(whole.stdout, "\n"), strings.Count(retried.stdout, "\n"), s.code)
	require.Equal(t, keys(whole.files), keys(retried.files), s.code)

	var requests atomic.Int64
	counting := func(n int64, w http.ResponseWriter, r *http.Request) bool {
		requests.Store(n)
		return failing(n, w, r)
	}
	failed := s.run(t, e.through(t, s, counting))
	if requests.Load() > 1 {
		require.NotZero(t, failed.code, "an error in the middle:\n%s\n%s", s.code, failed.stdout)
		require.Contains(t, failed.stdout+failed.stderr, strings.TrimSuffix(apitest.FailMessage, "."), s.code) // Go adds no period.
	} else {
		require.Zero(t, failed.code, "%s\n%s", s.code, failed.stderr)
	}
	if s.language != "bash" && s.language != "python" { // curl prints the HTML; the Python client has tests of its own.
		refused := s.run(t, e.through(t, s, down))
		if refused.code != 0 { // Who follows changes waits until the service is back.
			require.Regexp(t, "(?s)503.*(try|run this) again later", strings.ToLower(refused.stderr), s.code)
		}
	}
	if strings.Contains(s.code, "readings.csv") {
		cut := s.run(t, e.through(t, s, broken))
		require.NotZero(t, cut.code, "a broken connection:\n%s\n%s", s.code, cut.stdout)
		for name := range cut.files {
			require.True(t, strings.HasSuffix(name, ".part"), "a broken connection leaves %s:\n%s", name, s.code)
		}
	}
}

// mistype returns a key with another last letter, so that its checksum is wrong.
func mistype(key string) string {
	if strings.HasSuffix(key, "a") {
		return key[:len(key)-1] + "b"
	}
	return key[:len(key)-1] + "a"
}

func keys(files map[string]string) []string { return slices.Sorted(maps.Keys(files)) }

func contents(files map[string]string) []string { return slices.Collect(maps.Values(files)) }
