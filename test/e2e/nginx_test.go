package e2e_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/test/proctest"
	"roomsensor/test/tlstest"
)

// The hosts of deploy/proxy/nginx.conf.
const (
	sensorsURL   = "https://sensors.example.com"
	dashboardURL = "https://dashboard.example.com"
)

// The proxy connects from 127.0.0.1, which is trusted. Clients have another address.
const (
	proxyAddress  = "127.0.0.1"
	clientAddress = "127.0.0.2"
)

// restartClients is the number of clients that send while processes restart.
const restartClients = 4

// proxied is a service behind nginx, with the client of a person.
type proxied struct {
	*streamEnv
	browser   *http.Client
	accessLog string // of nginx
	log       *proctest.Output
	receivers []*server
	dashboard *server
}

// newProxied starts all processes, and nginx with deploy/proxy/nginx.conf in front of them.
func newProxied(t *testing.T) *proxied {
	t.Helper()
	nginx, err := exec.LookPath("nginx")
	if err != nil {
		nginx, err = exec.LookPath("/usr/sbin/nginx")
	}
	if err != nil {
		t.Skip("nginx is not installed: on Debian, install nginx-light")
	}
	e := &proxied{streamEnv: newStreamEnv(t)}
	e.settings["PUBLIC_URL"], e.settings["DASHBOARD_URL"] = sensorsURL, dashboardURL
	e.settings["TRUSTED_PROXIES"] = proxyAddress
	e.apis = []*server{e.start("api"), e.start("api")}
	e.start("ingest", "--no-receiver")
	e.receivers = []*server{e.start("ingest", "--no-worker"), e.start("ingest", "--no-worker")}
	e.receiver = e.receivers[0]
	e.dashboard = e.start("dashboard")

	certificates := tlstest.New(t, "sensors.example.com", "dashboard.example.com")
	plain, secure := proctest.Address(t), proctest.Address(t)
	e.startNginx(nginx, certificates, plain, secure)
	e.browser = newBrowser(t, certificates, map[string]string{"80": plain, "443": secure})
	require.Eventually(t, func() bool {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", secure)
		return err == nil && conn.Close() == nil
	}, patience, pollEvery)
	return e
}

// upstream returns the servers of an upstream.
func upstream(processes ...*server) (text string) {
	for _, p := range processes {
		text += "server " + strings.TrimPrefix(p.url, "http://") + " max_fails=0; "
	}
	return text
}

// startNginx starts nginx with the committed configuration, in which only addresses and certificates differ, and the
// number of servers of an upstream.
func (e *proxied) startNginx(nginx string, c tlstest.Certificates, plain, secure string) {
	e.t.Helper()
	text, err := os.ReadFile("../../deploy/proxy/nginx.conf")
	require.NoError(e.t, err)
	site, dir := string(text), e.t.TempDir()
	e.accessLog = filepath.Join(dir, "access.log")
	for _, r := range []struct {
		old, new string
		times    int
	}{
		{"    listen [::]:80;\n", "", 2},
		{"    listen [::]:443 ssl http2;\n", "", 2},
		{"listen 80;", "listen " + plain + ";", 2},
		{"listen 443 ssl", "listen " + secure + " ssl", 2},
		{"/etc/ssl/roomsensor/fullchain.pem", c.Server, 1},
		{"/etc/ssl/private/roomsensor.key", c.Key, 1},
		{"/var/log/nginx/roomsensor.log", e.accessLog, 1},
		{"/var/log/nginx/roomsensor-error.log", filepath.Join(dir, "error.log"), 2},
		{"server 127.0.0.1:8080 max_fails=0;", upstream(e.apis...), 1},
		{"server 127.0.0.1:8081 max_fails=0;", upstream(e.receivers...), 1},
		{"server 127.0.0.1:8082 max_fails=0;", upstream(e.dashboard), 1},
	} {
		require.Equal(e.t, r.times, strings.Count(site, r.old), r.old)
		site = strings.ReplaceAll(site, r.old, r.new)
	}
	main := fmt.Sprintf(`daemon off;
master_process off;
pid %[1]s/pid;
error_log stderr;
events {}
http {
	client_body_temp_path %[1]s/body;
	proxy_temp_path %[1]s/proxy;
	fastcgi_temp_path %[1]s/fastcgi;
	uwsgi_temp_path %[1]s/uwsgi;
	scgi_temp_path %[1]s/scgi;
%[2]s
}
`, dir, site)
	path := filepath.Join(dir, "nginx.conf")
	require.NoError(e.t, os.WriteFile(path, []byte(main), 0o600)) //nolint:gosec // A directory of the test.
	e.log = &proctest.Output{}
	process, err := proctest.Start(proctest.Command{
		Path: nginx, Args: []string{"-e", "stderr", "-p", dir, "-c", path}, Log: e.log,
	})
	require.NoError(e.t, err)
	e.t.Cleanup(func() {
		process.Kill()
		if e.t.Failed() {
			e.t.Log(e.log)
		}
	})
}

// newBrowser returns a client that knows the CA, keeps cookies and follows no redirect. It connects from clientAddress to
// the addresses of ports, whatever the host.
func newBrowser(t *testing.T, c tlstest.Certificates, ports map[string]string) *http.Client {
	t.Helper()
	pem, err := os.ReadFile(c.CA)
	require.NoError(t, err)
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(pem))
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(clientAddress)}}
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			_, port, err := net.SplitHostPort(address)
			if err != nil {
				return nil, err
			}
			return dialer.DialContext(ctx, network, ports[port])
		},
	}
	t.Cleanup(transport.CloseIdleConnections)
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	return &http.Client{
		Transport: transport, Jar: jar,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// do sends a request to the proxy. The caller must close the body of the response.
func (e *proxied) do(method, url, body string, header map[string]string) *http.Response {
	e.t.Helper()
	r, err := http.NewRequestWithContext(e.t.Context(), method, url, strings.NewReader(body))
	require.NoError(e.t, err)
	for name, value := range header {
		r.Header.Set(name, value)
	}
	got, err := e.browser.Do(r)
	require.NoError(e.t, err)
	return got
}

// fetch returns a response with its body.
func (e *proxied) fetch(method, url, body string, header map[string]string) (*http.Response, string) {
	e.t.Helper()
	got := e.do(method, url, body, header)
	text, err := io.ReadAll(got.Body)
	require.NoError(e.t, err)
	require.NoError(e.t, got.Body.Close())
	return got, string(text)
}

// bearer returns the header with a credential.
func bearer(key string) map[string]string { return map[string]string{"Authorization": "Bearer " + key} }

// TestNginx checks deploy/proxy/nginx.conf with a certificate of a CA in front of all processes.
func TestNginx(t *testing.T) {
	t.Parallel()
	e := newProxied(t)
	device := e.newDevice("dev:1")
	e.checkRedirect()
	e.checkTLS()
	e.checkSignIn()
	live := e.openTiles()
	began := time.Now()
	e.checkUpload()
	live.await("event: tile", device)
	t.Logf("from the upload to the tile behind the proxy: %v", time.Since(began).Round(time.Millisecond))
	e.checkExport(device)
	e.checkWait()
	live.await("event: state") // After the 30 s of the wait.
	e.checkClients()
	e.checkRestarts()
}

// checkRestarts restarts each process twice, one after the other, while clients read and upload. No request may fail.
func (e *proxied) checkRestarts() {
	e.t.Helper()
	var stopped atomic.Bool
	var reads, uploads atomic.Int64
	var load sync.WaitGroup
	line := fmt.Sprintf(`{"hardware_id":"dev:1","readings":[{"measured_at":"%s","co2_ppm":640}]}`, time.Now().UTC().Format(time.RFC3339))
	for range restartClients {
		load.Go(func() {
			for !stopped.Load() {
				e.mustAnswer(http.MethodGet, "/v1/team", "", e.key, http.StatusOK, &reads)
				e.mustAnswer(http.MethodPost, "/uploads", line, e.ingestKey, http.StatusAccepted, &uploads)
			}
		})
	}
	for range 2 {
		for _, s := range append(slices.Clone(e.apis), e.receivers...) {
			_, err := s.Stop(patience)
			require.NoError(e.t, err)
			e.restart(s)
		}
	}
	stopped.Store(true)
	load.Wait()
	e.t.Logf("%d reads and %d uploads", reads.Load(), uploads.Load())
	require.Positive(e.t, reads.Load())
	require.Positive(e.t, uploads.Load())
	require.NotContains(e.t, e.log.String(), "request:", "a line of nginx with the URL of a request, which may have a key")
}

// mustAnswer sends a request, and counts those with the wanted status. It is for other goroutines than that of the test.
func (e *proxied) mustAnswer(method, path, body, key string, want int, answered *atomic.Int64) {
	got, text := e.fetch(method, sensorsURL+path, body, bearer(key))
	switch got.StatusCode {
	case want:
		answered.Add(1)
	case http.StatusTooManyRequests: // The limit of the key, and not a failure of the proxy.
	default:
		e.t.Errorf("%s: %d %s", path, got.StatusCode, text)
	}
}

func (e *proxied) checkRedirect() {
	e.t.Helper()
	for _, url := range []string{sensorsURL + "/", sensorsURL + "/docs/errors", dashboardURL + "/sign-in?next=%2F"} {
		got, _ := e.fetch(http.MethodGet, strings.Replace(url, "https:", "http:", 1), "", nil)
		require.Equal(e.t, http.StatusMovedPermanently, got.StatusCode)
		require.Equal(e.t, url, got.Header.Get("Location"))
	}
	for method, path := range map[string]string{http.MethodGet: "/v1/devices?limit=1", http.MethodPost: "/uploads"} {
		got, text := e.fetch(method, strings.Replace(sensorsURL, "https:", "http:", 1)+path, "", nil)
		require.Equal(e.t, http.StatusForbidden, got.StatusCode, "a redirect would hide that the key was sent in plain text")
		require.Contains(e.t, text, "Use https.")
	}
}

// checkTLS checks that the proxy accepts no old version of TLS, and no cipher without ephemeral keys.
func (e *proxied) checkTLS() {
	e.t.Helper()
	transport, ok := e.browser.Transport.(*http.Transport)
	require.True(e.t, ok)
	for name, change := range map[string]func(*tls.Config){
		"TLS 1.1":           func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS11, tls.VersionTLS11 },
		"no ephemeral keys": func(c *tls.Config) { c.CipherSuites = []uint16{tls.TLS_RSA_WITH_AES_128_GCM_SHA256} },
		"CBC": func(c *tls.Config) {
			c.CipherSuites = []uint16{tls.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA, tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA}
		},
		"": func(*tls.Config) {},
	} {
		other := transport.Clone()
		other.TLSClientConfig.MaxVersion = tls.VersionTLS12
		change(other.TLSClientConfig)
		r, err := http.NewRequestWithContext(e.t.Context(), http.MethodGet, dashboardURL+"/sign-in", nil)
		require.NoError(e.t, err)
		got, err := other.RoundTrip(r)
		if err == nil {
			require.NoError(e.t, got.Body.Close())
		}
		require.Equal(e.t, name == "", err == nil, "%s: %v", name, err)
		other.CloseIdleConnections()
	}
}

// checkSignIn lets a person join and sign in again, and checks the cookie.
func (e *proxied) checkSignIn() {
	e.t.Helper()
	const password = "correct horse battery staple"
	link := e.field("link", "user", "invite", "--team", e.team, "--email", "kim@example.com", "--role", "viewer")
	require.True(e.t, strings.HasPrefix(link, dashboardURL+"/invitation/"), link)
	form := map[string]string{
		"Content-Type": "application/x-www-form-urlencoded", "Sec-Fetch-Site": "same-origin", "Origin": dashboardURL,
	}
	joined, text := e.fetch(http.MethodPost, link, url.Values{"password": {password}}.Encode(), form)
	require.Equal(e.t, http.StatusSeeOther, joined.StatusCode, text)
	signedIn, text := e.fetch(http.MethodPost, dashboardURL+"/sign-in",
		url.Values{"email": {"kim@example.com"}, "password": {password}}.Encode(), form)
	require.Equal(e.t, http.StatusSeeOther, signedIn.StatusCode, text)
	require.Equal(e.t, "max-age=31536000; includeSubDomains", signedIn.Header.Get("Strict-Transport-Security"))
	require.Equal(e.t, 2, signedIn.ProtoMajor)
	require.Len(e.t, signedIn.Cookies(), 1)
	cookie := signedIn.Cookies()[0]
	require.Equal(e.t, "__Host-roomsensor", cookie.Name)
	require.True(e.t, cookie.Secure && cookie.HttpOnly)
	require.Equal(e.t, http.SameSiteLaxMode, cookie.SameSite)
	require.Equal(e.t, "/", cookie.Path)
	require.Empty(e.t, cookie.Domain)
	page, text := e.fetch(http.MethodGet, dashboardURL+"/teams/"+e.team, "", nil)
	require.Equal(e.t, http.StatusOK, page.StatusCode, text)
	for _, path := range []string{"/shared/", "/mails/stop/"} {
		none, text := e.fetch(http.MethodGet, dashboardURL+path+"SECRETOFALINK", "", nil)
		require.Equal(e.t, http.StatusNotFound, none.StatusCode, text)
	}
	var logged []byte
	require.Eventually(e.t, func() bool { // The line of a request comes after its response.
		var err error
		logged, err = os.ReadFile(e.accessLog)
		return err == nil && strings.Contains(string(logged), `"GET /mails/stop/" 404`)
	}, patience, pollEvery)
	require.Contains(e.t, string(logged), `"POST /invitation/" 303`)
	require.Contains(e.t, string(logged), `"GET /shared/" 404`)
	for _, secret := range []string{strings.TrimPrefix(link, dashboardURL+"/invitation/"), "SECRETOFALINK"} {
		require.NotContains(e.t, string(logged), secret)
	}
}

// tiles are the lines of the stream of an overview.
type tiles struct {
	t     *testing.T
	lines chan string
}

// openTiles opens the stream of the overview, and waits until it is current.
func (e *proxied) openTiles() *tiles {
	e.t.Helper()
	got := e.do(http.MethodGet, dashboardURL+"/teams/"+e.team+"/tiles", "", nil)
	require.Equal(e.t, "text/event-stream", got.Header.Get("Content-Type"))
	s := &tiles{e.t, make(chan string, 1000)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer close(s.lines)
		for scanner := bufio.NewScanner(got.Body); scanner.Scan(); {
			s.lines <- scanner.Text()
		}
	}()
	e.t.Cleanup(func() {
		require.NoError(e.t, got.Body.Close())
		<-done
	})
	s.await("event: state")
	return s
}

// await reads lines until each of some texts was in one of them.
func (s *tiles) await(texts ...string) {
	s.t.Helper()
	timeout := time.After(patience)
	for _, text := range texts {
		for found := false; !found; {
			select {
			case line, open := <-s.lines:
				require.True(s.t, open, "the stream ended")
				found = strings.Contains(line, text)
			case <-timeout:
				require.Fail(s.t, "nothing arrives", text)
			}
		}
	}
}

// checkUpload sends more than the 1 MiB that nginx allows by default.
func (e *proxied) checkUpload() {
	e.t.Helper()
	line := fmt.Sprintf(`{"hardware_id":"dev:1","note":"%s","readings":[{"measured_at":"%s","co2_ppm":640}]}`+"\n",
		strings.Repeat("x", 500_000), time.Now().UTC().Format(time.RFC3339))
	got, text := e.fetch(http.MethodPost, sensorsURL+"/uploads", strings.Repeat(line, 3), bearer(e.ingestKey))
	require.Equal(e.t, http.StatusAccepted, got.StatusCode, text)
	require.Contains(e.t, text, `"stored":3`)
	got, text = e.fetch(http.MethodGet, sensorsURL+"/rejects", "", bearer(e.ingestKey))
	require.Equal(e.t, http.StatusOK, got.StatusCode, text)
	got, text = e.fetch(http.MethodPost, sensorsURL+"/sources/"+uuid.NewString(), "{}", bearer(e.ingestKey))
	require.Equal(e.t, http.StatusForbidden, got.StatusCode, text)
}

func (e *proxied) checkExport(device string) {
	e.t.Helper()
	got, text := e.fetch(http.MethodGet, sensorsURL+"/v1/readings.csv?last=1h&devices="+device, "", bearer(e.key))
	require.Equal(e.t, http.StatusOK, got.StatusCode, text)
	require.Equal(e.t, 2, strings.Count(text, "\n"), text)
}

// checkWait waits for changes as long as the API allows.
func (e *proxied) checkWait() {
	e.t.Helper()
	query := ""
	for caughtUp := false; !caughtUp; {
		var page struct {
			CaughtUp   bool   `json:"caught_up"`
			NextCursor string `json:"next_cursor"`
		}
		_, text := e.fetch(http.MethodGet, sensorsURL+"/v1/readings/changes?"+query, "", bearer(e.key))
		require.NoError(e.t, json.Unmarshal([]byte(text), &page), text)
		require.NotEmpty(e.t, page.NextCursor, text)
		query, caughtUp = "cursor="+page.NextCursor, page.CaughtUp
	}
	began := time.Now()
	got, text := e.fetch(http.MethodGet, sensorsURL+"/v1/readings/changes?wait=30&"+query, "", bearer(e.key))
	require.Equal(e.t, http.StatusOK, got.StatusCode, text)
	require.GreaterOrEqual(e.t, time.Since(began), 29*time.Second, text)
}

// checkClients checks that a process of each kind logs the address of the client, not that of the proxy, nor one that the client
// chose. The dashboard counts attempts to sign in by the same address.
func (e *proxied) checkClients() {
	e.t.Helper()
	spoofed := map[string]string{"X-Forwarded-For": "203.0.113.9", "X-Forwarded-Prefix": "/spoofed", "Authorization": "Bearer x"}
	for url, processes := range map[string][]*server{
		sensorsURL + "/v1/team": e.apis, sensorsURL + "/rejects": e.receivers, dashboardURL + "/unknown": {e.dashboard},
	} {
		_, text := e.fetch(http.MethodGet, url, "", spoofed)
		require.NotContains(e.t, text, "spoofed")
		var logs string
		require.Eventually(e.t, func() bool {
			logs = ""
			for _, s := range processes {
				logs += s.log.String()
			}
			return strings.Contains(logs, `"client":"`+clientAddress+`"`)
		}, patience, pollEvery)
		require.NotContains(e.t, logs, "203.0.113.9")
		require.NotContains(e.t, logs, `"client":"`+proxyAddress+`"`)
	}
}
