package httpedge_test

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/httpedge"
)

var proxies = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8::/32")}

// from returns a request from an address with headers given as names and values in turn.
func from(address string, headers ...string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/v1/team", nil)
	r.Host, r.RemoteAddr = "api.example:8443", address
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	return r
}

func TestSitePublic(t *testing.T) {
	t.Parallel()
	const proxy, client = "10.1.2.3:5000", "192.0.2.7:5000"
	site := httpedge.Site{LocalURL: "http://local.example", Proxies: proxies}
	for _, c := range []struct {
		request *http.Request
		want    string
	}{
		{from(client), "http://api.example:8443"},
		{from(client, "X-Forwarded-Proto", "https", "X-Forwarded-Prefix", "/a", "X-Forwarded-Host", "evil.example"), "http://api.example:8443"},
		{from(proxy, "X-Forwarded-Proto", "https"), "https://api.example:8443"},
		{from("[2001:db8::1]:5000", "X-Forwarded-Proto", "HTTPS"), "https://api.example:8443"},
		{from("[::ffff:10.1.2.3]:5000", "X-Forwarded-Proto", "https"), "https://api.example:8443"},
		{from(proxy, "X-Forwarded-Host", "evil.example"), "http://api.example:8443"},
		{from(proxy, "X-Forwarded-Prefix", "/sensors/a-1/"), "http://api.example:8443/sensors/a-1"},
		{from(proxy, "X-Forwarded-Prefix", "//evil.example"), "http://api.example:8443"},
		{from(proxy, "X-Forwarded-Prefix", "/a\"><script>"), "http://api.example:8443"},
		{from(proxy, "X-Forwarded-Proto", "javascript"), "http://api.example:8443"},
		{from("", "X-Forwarded-Proto", "https"), "http://api.example:8443"},
	} {
		require.Equal(t, c.want, site.Public(c.request))
		require.Equal(t, c.want+"/docs", site.Docs(c.request))
	}
	for host, usable := range map[string]bool{
		"localhost": true, "LOCALHOST:1": true, "127.0.0.1:8080": true, "[::1]:80": true, "a-b.c.example.": true,
		"": false, "a b": false, "a/b": false, "a@b": false, "a_b": false, "a\"b": false, "[::1": false, "a:b": false,
		"a:123456": false, "a?b": false, "a%2fb": false, strings.Repeat("a", 254): false, "é.example": false,
	} {
		r := from(client)
		r.Host = host
		require.Equal(t, usable, site.Public(r) == "http://"+host, host)
		require.Equal(t, !usable, site.Public(r) == site.LocalURL, host)
	}
	site.PublicURL = "https://a.example/x/"
	require.Equal(t, "https://a.example/x", site.Public(from(client)))
	require.Equal(t, "https://a.example/x/docs", site.Docs(from(client)))
	site.DocsURL = "https://b.example/"
	require.Equal(t, "https://b.example", site.Docs(from(client)))
}

func TestSiteClients(t *testing.T) {
	t.Parallel()
	const header = "X-Forwarded-For"
	direct, proxied := (&httpedge.Site{}).Clients(), (&httpedge.Site{Proxies: proxies}).Clients()
	for _, c := range []struct {
		request               *http.Request
		wantDirect, wantProxy string
	}{
		{from("192.0.2.7:1"), "192.0.2.7", "192.0.2.7"},
		{from("127.0.0.1:1", header, "198.51.100.1"), "127.0.0.1", "127.0.0.1"},
		{from("192.0.2.7:1", header, "198.51.100.1"), "192.0.2.7", "192.0.2.7"},
		{from("10.1.2.3:1", header, "198.51.100.1"), "10.1.2.3", "198.51.100.1"},
		{from("10.1.2.3:1", header, "1.1.1.1, 198.51.100.1, 10.9.9.9"), "10.1.2.3", "198.51.100.1"},
		{from("10.1.2.3:1", header, "rsk_a_secret"), "10.1.2.3", "10.1.2.3"},
		{from("[2001:db8::1]:1", header, "2001:4860::8"), "2001:db8::1", "2001:4860::8"},
	} {
		require.Equal(t, c.wantDirect, direct(c.request))
		require.Equal(t, c.wantProxy, proxied(c.request))
	}
}
