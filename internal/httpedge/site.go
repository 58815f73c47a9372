package httpedge

import (
	"cmp"
	"net"
	"net/http"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"
)

// Site determines addresses that depend on the request: that of the service, as its client reaches it, and that of the
// client. Headers of proxies count only if a trusted proxy sent them.
type Site struct {
	PublicURL string // base URL for clients, as configured, without /v1; empty means that of the request
	DocsURL   string // base URL of the docs, as configured; empty means /docs below the public URL
	LocalURL  string // base URL for a request that names no usable host
	Proxies   []netip.Prefix
}

// The headers of proxies beside X-Forwarded-For. The host is not among them: a proxy that does not set X-Forwarded-Host
// passes on whatever the client sent.
const (
	forwardedProto  = "X-Forwarded-Proto"
	forwardedPrefix = "X-Forwarded-Prefix"
)

// A URL that a client receives must contain nothing but a host name or an address with a port, and a plain path. An
// underscore is not allowed, because keys contain it.
var (
	plainHost   = regexp.MustCompile(`^([0-9A-Za-z.-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(:[0-9]{1,5})?$`)
	plainPrefix = regexp.MustCompile(`^(/[0-9A-Za-z.~-]{1,64}){1,8}$`)
)

// Public returns the base URL of the service for the client of a request, without /v1 and without a trailing slash.
func (s *Site) Public(r *http.Request) string {
	switch {
	case s.PublicURL != "":
		return strings.TrimRight(s.PublicURL, "/")
	case !plainHost.MatchString(r.Host):
		return s.LocalURL
	}
	scheme, prefix := "http", ""
	if s.fromProxy(r) {
		if strings.EqualFold(r.Header.Get(forwardedProto), "https") {
			scheme = "https"
		}
		if path := strings.TrimRight(r.Header.Get(forwardedPrefix), "/"); plainPrefix.MatchString(path) {
			prefix = path
		}
	}
	return scheme + "://" + r.Host + prefix
}

// Docs returns the base URL of the docs for the client of a request, without a trailing slash.
func (s *Site) Docs(r *http.Request) string {
	return strings.TrimRight(cmp.Or(s.DocsURL, s.Public(r)+"/docs"), "/")
}

// fromProxy reports whether a request comes directly from a trusted proxy.
func (s *Site) fromProxy(r *http.Request) bool {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && slices.ContainsFunc(s.Proxies, func(p netip.Prefix) bool {
		return p.Contains(from.Addr().Unmap())
	})
}

// Clients returns a function that returns the address of the client of a request: the nearest one that is not that of a
// trusted proxy, by X-Forwarded-For.
func (s *Site) Clients() func(*http.Request) string {
	trust := []echo.TrustOption{echo.TrustLoopback(false), echo.TrustLinkLocal(false), echo.TrustPrivateNet(false)}
	for _, p := range s.Proxies {
		trust = append(trust, echo.TrustIPRange(&net.IPNet{
			IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen()),
		}))
	}
	return echo.ExtractIPFromXFFHeader(trust...)
}
