package config

import (
	"cmp"
	"errors"
	"net"
	"net/url"
	"strings"

	"github.com/rs/zerolog"
)

// DashboardSite is where people reach the dashboard. The commands that print links to it need it too.
type DashboardSite struct {
	DashboardAddr string `default:"127.0.0.1:8082" help:"Address that the dashboard listens on." placeholder:"HOST:PORT" setting:"" rule:"address"`
	DashboardURL  string `help:"Address of the dashboard for people: https:// and a host; http:// only on this machine." implied:"http://DASHBOARD_ADDR" name:"dashboard-url" placeholder:"URL" setting:"" rule:"dashboard-url"`
}

var errDashboardURL = errors.New("must be the address that people open, without a path: https:// and a host in lower " +
	"case, for example https://dashboard.example.com. http:// is allowed for this machine only, because passwords would " +
	"be readable on the network")

// Validate checks the form of the addresses.
func (c *DashboardSite) Validate() error {
	if err := validate(c); err != nil {
		return err
	}
	if err := dashboardURL(c.URL("")); err != nil {
		return &ValueError{Flag: "dashboard-url", Reason: err.Error()}
	}
	return nil
}

// dashboardURL checks that an address is the origin of its pages. The name of a session's cookie allows no path.
func dashboardURL(value string) error {
	u, err := url.Parse(value)
	if err != nil || !isOrigin(value) || u.Scheme == "http" && !IsLoopback(u.Hostname()) {
		return errDashboardURL
	}
	return nil
}

// IsLoopback reports whether a host is this machine: localhost, or a loopback address.
func IsLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// URL returns the address of the dashboard without a trailing slash. bound is the address of its listener, as in
// Site.Public.
func (c *DashboardSite) URL(bound string) string {
	return strings.TrimRight(cmp.Or(c.DashboardURL, localURL(c.DashboardAddr, bound)), "/")
}

// Dashboard configures the processes that serve the dashboard.
type Dashboard struct {
	Database
	DashboardSite
	ReceiverSite
	Log
	AccessLog
	Tracing
	Stop
	APIAddr        string   `default:"127.0.0.1:8080" help:"Address of the API on this machine." placeholder:"HOST:PORT" setting:"" rule:"address"`
	PublicURL      string   `help:"Address of the API for clients, without /v1, which samples show." implied:"http://API_ADDR" name:"public-url" placeholder:"URL" setting:"" rule:"public-url"`
	TrustedProxies Networks `help:"Addresses or networks of proxies, separated by commas, whose X-Forwarded-For is believed." implied:"none" placeholder:"CIDR,..." setting:""`
	PasswordList   string   `help:"File with passwords that nobody may choose, such as those of known breaches: one per line, at most a million." implied:"none" placeholder:"FILE" setting:""`
	OpsAddr        string   `default:"127.0.0.1:9082" help:"Address of health checks, metrics and profiles." placeholder:"HOST:PORT" setting:"" rule:"address"`
}

// Validate checks everything that can be checked without connecting.
func (c *Dashboard) Validate() error {
	return cmp.Or(validate(c), c.DashboardSite.Validate(), c.ReceiverSite.Validate())
}

// API returns the address of the API for clients, without /v1 and without a trailing slash.
func (c *Dashboard) API() string {
	return (&Site{APIAddr: c.APIAddr, PublicURL: c.PublicURL}).Public("")
}

// MarshalZerologObject logs the configuration without its secrets.
func (c *Dashboard) MarshalZerologObject(e *zerolog.Event) {
	inForce := *c
	inForce.DashboardURL, inForce.PublicURL = c.URL(""), c.API()
	logSettings(e, &inForce)
}
