package config

import (
	"errors"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// The schemes of URLs.
var (
	databaseSchemes = []string{"postgres", "postgresql"}
	queueSchemes    = []string{"nats", "tls", "ws", "wss"}
	webSchemes      = []string{"http", "https"}
)

var (
	errDatabaseMissing = errors.New("is missing. Give the URL of the database, " +
		"for example postgres://user@host:5432/roomsensor")
	errDatabaseURL = errors.New("is not a URL of a PostgreSQL database. " +
		"It has the form postgres://user@host:5432/roomsensor, with :password after the user; " +
		"several hosts are separated by commas, and special characters in the password are percent-encoded")
	errQueueMissing = errors.New("is missing. Give the URL of NATS, for example nats://host:4222")
	errQueueURL     = errors.New("is not a URL of NATS. It has the form nats://host:4222; " +
		"several URLs are separated by commas, and special characters in the password are percent-encoded")
	errCertificates = errors.New("is not a file that this process can read, with a certificate in PEM format")
	errWebURL       = errors.New("is not a URL that clients can reach. It has the form https://sensors.example.com, " +
		"without a user, a query or a fragment")
	errVersioned = errors.New("must not end in /v1: the service adds the version itself")
)

// databaseURL checks the form of a PostgreSQL URL. The driver checks the rest, such as the value of sslmode.
func databaseURL(value string) error {
	if value == "" {
		return errDatabaseMissing
	}
	if !strings.Contains(value, "://") {
		return errDatabaseURL
	}
	for _, single := range singleHosts(value) {
		if !isURL(single, databaseSchemes) {
			return errDatabaseURL
		}
	}
	return nil
}

// singleHosts splits a URL with several hosts into one URL per host, because net/url accepts only one host.
func singleHosts(value string) []string {
	scheme, rest, _ := strings.Cut(value, "://")
	authority, tail := rest, ""
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		authority, tail = rest[:end], rest[end:]
	}
	user, hosts := "", authority
	if at := strings.LastIndexByte(authority, '@'); at >= 0 {
		user, hosts = authority[:at+1], authority[at+1:]
	}
	var single []string
	for host := range strings.SplitSeq(hosts, ",") {
		single = append(single, scheme+"://"+user+host+tail)
	}
	return single
}

// queueURL checks the form of one or more NATS URLs, separated by commas.
func queueURL(value string) error {
	if value == "" {
		return errQueueMissing
	}
	for single := range strings.SplitSeq(value, ",") {
		u, err := url.Parse(strings.TrimSpace(single))
		if err != nil || !slices.Contains(queueSchemes, u.Scheme) || u.Hostname() == "" || !hasGoodPort(u) {
			return errQueueURL
		}
	}
	return nil
}

// webURL checks the form of an address that browsers can open.
func webURL(value string) error {
	u, err := url.Parse(value)
	if err != nil || !slices.Contains(webSchemes, u.Scheme) || u.Hostname() == "" || !hasGoodPort(u) ||
		u.User != nil || strings.ContainsAny(value, "?#") {
		return errWebURL
	}
	return nil
}

// publicURL checks the form of the address that clients reach.
func publicURL(value string) error {
	if strings.HasSuffix(strings.TrimRight(value, "/"), "/v1") {
		return errVersioned
	}
	return webURL(value)
}

// isURL also accepts a URL without a host: PostgreSQL then uses the parameter host, or its default socket.
func isURL(value string, schemes []string) bool {
	u, err := url.Parse(value)
	return err == nil && slices.Contains(schemes, u.Scheme) && u.Opaque == "" && hasGoodPort(u)
}

func hasGoodPort(u *url.URL) bool { return u.Port() == "" || isPort(u.Port()) }

func isPort(text string) bool {
	_, err := strconv.ParseUint(text, 10, 16)
	return err == nil
}

var errAddress = errors.New("is not an address to listen on. It has the form host:port, for example 127.0.0.1:8080")

// address checks the form of host:port. An empty host means all addresses of the machine, and port 0 any free port.
func address(value string) error {
	_, port, err := net.SplitHostPort(value)
	if err != nil || !isPort(port) {
		return errAddress
	}
	return nil
}
