package config

import (
	"cmp"
	"errors"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// Site is where clients reach the API and its documentation, and through which proxies. All processes that answer
// clients need it, because errors link to their page.
type Site struct {
	APIAddr        string   `default:"127.0.0.1:8080" help:"Address that the API listens on." placeholder:"HOST:PORT" setting:"" rule:"address"`
	PublicURL      string   `help:"Address that clients reach, without /v1." implied:"the host of each request" name:"public-url" placeholder:"URL" setting:"" rule:"public-url"`
	DocsURL        string   `help:"Address of the documentation." implied:"PUBLIC_URL/docs" name:"docs-url" placeholder:"URL" setting:"" rule:"web-url"`
	TrustedProxies Networks `help:"Addresses or networks of proxies, separated by commas, whose X-Forwarded-For, X-Forwarded-Proto and X-Forwarded-Prefix are believed." implied:"none" placeholder:"CIDR,..." setting:""`
}

// Validate checks the form of the addresses.
func (c *Site) Validate() error { return validate(c) }

// Public returns the address that clients reach, without /v1 and without a trailing slash. If none is configured, it is
// the one for clients on this machine. bound is the address of the listener; it replaces port 0. It may be empty if
// it is unknown.
func (c *Site) Public(bound string) string {
	return strings.TrimRight(cmp.Or(c.PublicURL, localURL(c.APIAddr, bound)), "/")
}

// Docs returns the address of the documentation, without a trailing slash, as Public does.
func (c *Site) Docs(bound string) string {
	return strings.TrimRight(cmp.Or(c.DocsURL, c.Public(bound)+"/docs"), "/")
}

// localURL returns the URL at which this machine reaches a listener: the configured address, with the bound port
// instead of port 0.
func localURL(configured, bound string) string {
	host, port, err := net.SplitHostPort(configured)
	if err != nil {
		return "http://" + configured
	}
	if _, boundPort, err := net.SplitHostPort(bound); err == nil && port == "0" {
		port = boundPort
	}
	return "http://" + net.JoinHostPort(localHost(host), port)
}

// Networks is a list of IP addresses and networks, separated by commas: 10.0.0.0/8,192.0.2.7. It may be empty.
type Networks struct {
	Prefixes []netip.Prefix
}

var errNetworks = errors.New("must be IP addresses or networks, separated by commas, for example 10.0.0.0/8,192.0.2.7")

// UnmarshalText parses a list of networks.
func (n *Networks) UnmarshalText(text []byte) error {
	n.Prefixes = nil
	for _, item := range items(string(text)) {
		prefix, err := netip.ParsePrefix(item)
		if err != nil {
			address, addressErr := netip.ParseAddr(item)
			if addressErr != nil || address.Zone() != "" {
				return errNetworks
			}
			prefix = netip.PrefixFrom(address, address.BitLen())
		}
		n.Prefixes = append(n.Prefixes, prefix.Masked())
	}
	return nil
}

func (n Networks) String() string {
	texts := make([]string, len(n.Prefixes))
	for i, prefix := range n.Prefixes {
		texts[i] = prefix.String()
	}
	return strings.Join(texts, ",")
}

// Origins is a list of origins of web pages, separated by commas, as browsers send them: https://dashboard.example.com.
// It may be empty.
type Origins struct {
	List []string
}

var errOrigins = errors.New("must be origins as browsers send them, separated by commas: scheme, host in lower case, " +
	"and the port unless it is that of the scheme, for example https://dashboard.example.com,http://localhost:3000")

// UnmarshalText parses a list of origins.
func (o *Origins) UnmarshalText(text []byte) error {
	o.List = items(string(text))
	if slices.ContainsFunc(o.List, func(origin string) bool { return !isOrigin(origin) }) {
		return errOrigins
	}
	return nil
}

func (o Origins) String() string { return strings.Join(o.List, ",") }

// ReceiverSite is where senders reach the receiver. The commands that print the URL of a source need it.
type ReceiverSite struct {
	IngestURL string `default:"http://127.0.0.1:8081" help:"Address of the receiver for senders." name:"ingest-url" placeholder:"URL" setting:"" rule:"service-url"`
}

// Validate checks the form of the address.
func (c *ReceiverSite) Validate() error { return validate(c) }

// SourceURL returns the URL to which the sender of a source posts.
func (c *ReceiverSite) SourceURL(sourceID string) string {
	return strings.TrimRight(c.IngestURL, "/") + "/sources/" + sourceID
}

// defaultPorts are the ports that browsers leave out.
var defaultPorts = map[string]string{"http": "80", "https": "443"}

// isOrigin reports whether text is the origin of a web page, exactly as browsers send it. There are no patterns: a
// browser never sends an asterisk.
func isOrigin(text string) bool {
	u, err := url.Parse(text)
	return err == nil && defaultPorts[u.Scheme] != "" && u.Hostname() != "" && hasGoodPort(u) &&
		u.Port() != defaultPorts[u.Scheme] && text == u.Scheme+"://"+u.Host && text == strings.ToLower(text) &&
		!strings.ContainsAny(text, "*%") && !strings.HasSuffix(text, ":")
}

// items splits a list at its commas. Spaces do not matter.
func items(list string) []string {
	if strings.TrimSpace(list) == "" {
		return nil
	}
	all := strings.Split(list, ",")
	for i := range all {
		all[i] = strings.TrimSpace(all[i])
	}
	return all
}
