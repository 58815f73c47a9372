package e2e_test

import (
	"bytes"
	"crypto/sha256"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// interposer is a proxy of an API that calls a function before it forwards a request for an export.
type interposer struct {
	url    string
	mu     sync.Mutex
	before func()
}

func (e *env) interpose(s *server) *interposer {
	e.t.Helper()
	target, err := url.Parse(s.url)
	require.NoError(e.t, err)
	forward := httputil.NewSingleHostReverseProxy(target)
	forward.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }
	i := &interposer{}
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, ".csv") {
			i.mu.Lock()
			i.before()
			i.mu.Unlock()
		}
		forward.ServeHTTP(w, r)
	}))
	e.t.Cleanup(proxy.Close)
	i.url = proxy.URL
	return i
}

// clientCommand returns a command of the program for clients, which is not started yet.
func (e *env) clientCommand(address string, args ...string) *exec.Cmd {
	e.t.Helper()
	cmd := exec.CommandContext(e.t.Context(), program, args...)
	cmd.Env = []string{"HOME=" + e.t.TempDir(), "ROOMSENSOR_URL=" + address, "ROOMSENSOR_API_KEY=" + e.key}
	return cmd
}

// TestExportCommand exports three years while the API is killed and started again twice, and the command is killed
// again and again. The file equals that of an undisturbed export.
func TestExportCommand(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	api := e.start("api")
	e.newDevice("dev:1")
	e.newDevice("dev:2")
	e.exec(`INSERT INTO readings (device_id, bucket_at, co2_ppm, temp_c)
		SELECT id, timestamptz '2023-01-01T00:00:00Z' + i * INTERVAL '6 hours', i % 700, 20.5
		FROM devices, generate_series(0, 4379) i WHERE team_id = $1`, e.team)
	dir := t.TempDir()
	arguments := func(name string) []string {
		return []string{
			"export", "--from", "2023-01-01T00:00:00Z", "--to", "2026-01-01T00:00:00Z", "--output", filepath.Join(dir, name),
		}
	}
	out, err := e.clientCommand(api.url, arguments("undisturbed.csv")...).CombinedOutput()
	require.NoError(t, err, string(out))

	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	proxy := e.interpose(api)
	kills, restarts := 0, 0
	for done := false; !done; {
		command := e.clientCommand(proxy.url, arguments("disturbed.csv")...)
		requests, kill, restart := 0, 1+random.IntN(3), 1+random.IntN(2)
		proxy.mu.Lock()
		proxy.before = func() {
			requests++
			if requests == restart && restarts < 2 {
				restarts++
				api.Kill()
				e.restart(api)
			}
			if requests == kill && kills < 8 {
				kills++
				require.NoError(t, command.Process.Kill())
			}
		}
		var out bytes.Buffer
		command.Stdout, command.Stderr = &out, &out
		err := command.Start() // Before the proxy reads command.Process.
		proxy.mu.Unlock()
		require.NoError(t, err)
		err = command.Wait()
		done = err == nil
		if !done {
			require.ErrorAs(t, err, new(*exec.ExitError))
			require.Equal(t, -1, command.ProcessState.ExitCode(), out.String())
			require.NoFileExists(t, filepath.Join(dir, "disturbed.csv"))
		}
	}
	require.Equal(t, 2, restarts)
	require.Positive(t, kills)
	hash := func(name string) [32]byte {
		text, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Equal(t, 1+2*4380, strings.Count(string(text), "\n"))
		return sha256.Sum256(text)
	}
	require.Equal(t, hash("undisturbed.csv"), hash("disturbed.csv"))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 2, "no parts are left")
}
