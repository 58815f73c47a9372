package config

import (
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// Tracing configures the export of traces, with the variables of OpenTelemetry.
type Tracing struct {
	OTLPEndpoint    string      `help:"Base URL of a collector that accepts OTLP over HTTP, to which traces are sent." implied:"no tracing" name:"otel-exporter-otlp-endpoint" placeholder:"URL" setting:"" rule:"collector-url"`
	OTLPHeaders     OTLPHeaders `help:"Headers of the requests to the collector, NAME=VALUE, separated by commas, percent-encoded." implied:"none" name:"otel-exporter-otlp-headers" placeholder:"NAME=VALUE,..." setting:""`
	OTLPCertificate string      `help:"File with the certificates of the CAs of the collector." implied:"those of the system" name:"otel-exporter-otlp-certificate" placeholder:"FILE" setting:"" rule:"certificates"`
	Sampler         string      `default:"always_on" help:"Which traces are recorded: always_on, always_off or traceidratio; with the prefix parentbased_, clients that send traceparent decide." name:"otel-traces-sampler" placeholder:"SAMPLER" setting:"" rule:"sampler"`
	SamplerArg      string      `default:"1" help:"Share of the traces that traceidratio records, 0 to 1." name:"otel-traces-sampler-arg" placeholder:"RATIO" setting:"" rule:"ratio"`
}

// tracesPath is appended to the base URL of a collector (OTLP).
const tracesPath = "/v1/traces"

const parentBased = "parentbased_"

var (
	errCollectorURL = errors.New("is not the base URL of a collector. It has the form http://collector:4318, " +
		"without a user, a query or a fragment")
	errTracesPath = errors.New("must not end in /v1/traces: the path is appended")
	errSampler    = errors.New("must be one of always_on, always_off, traceidratio, parentbased_always_on, " +
		"parentbased_always_off, parentbased_traceidratio")
	errRatio = errors.New("must be a number from 0 to 1, for example 0.01")
)

// Validate checks the form of the settings, and the file of the CAs.
func (c *Tracing) Validate() error { return validate(c) }

func collectorURL(value string) error {
	switch {
	case webURL(value) != nil:
		return errCollectorURL
	case strings.HasSuffix(strings.TrimRight(value, "/"), tracesPath):
		return errTracesPath
	}
	return nil
}

func samplerName(value string) error {
	switch strings.TrimPrefix(value, parentBased) {
	case "always_on", "always_off", "traceidratio":
		return nil
	}
	return errSampler
}

func ratio(value string) error {
	if n, err := strconv.ParseFloat(value, 64); err != nil || math.IsNaN(n) || n < 0 || n > 1 {
		return errRatio
	}
	return nil
}

// TracesURL returns the URL to which traces are sent, or an empty text without tracing.
func (c *Tracing) TracesURL() string {
	if c.OTLPEndpoint == "" {
		return ""
	}
	return strings.TrimRight(c.OTLPEndpoint, "/") + tracesPath
}

// Ratio returns the share of traces that are recorded, and whether the decision of a client takes precedence.
func (c *Tracing) Ratio() (ratio float64, trustParent bool) {
	name, trustParent := strings.CutPrefix(c.Sampler, parentBased)
	switch name {
	case "always_on":
		ratio = 1
	case "traceidratio":
		ratio, _ = strconv.ParseFloat(c.SamplerArg, 64) // Validate has parsed it.
	}
	return ratio, trustParent
}

// TLS returns the CAs of the collector, or nil for those of the system.
func (c *Tracing) TLS() (*tls.Config, error) {
	if c.OTLPCertificate == "" {
		return nil, nil //nolint:nilnil // nil is a valid configuration.
	}
	pool, err := CertPool(c.OTLPCertificate)
	if err != nil {
		return nil, fmt.Errorf("reading the certificates of the collector: %w", err)
	}
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, nil
}

// OTLPHeaders are headers, written as NAME=VALUE, separated by commas, with percent-encoded values. The values are
// never printed or logged, because they may be secret.
type OTLPHeaders struct{ ByName map[string]string }

var errHeaders = errors.New("must be NAME=VALUE, separated by commas, with percent-encoded values, " +
	"for example Authorization=Bearer%20abc")

// UnmarshalText parses headers.
func (h *OTLPHeaders) UnmarshalText(text []byte) error {
	h.ByName = map[string]string{}
	for _, item := range items(string(text)) {
		name, encoded, found := strings.Cut(item, "=")
		name = strings.TrimSpace(name)
		value, err := url.PathUnescape(strings.TrimSpace(encoded))
		if !found || err != nil || !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) {
			return errHeaders
		}
		h.ByName[name] = value
	}
	return nil
}

// String returns the names.
func (h OTLPHeaders) String() string { return strings.Join(slices.Sorted(maps.Keys(h.ByName)), ",") }

// GoString masks the values in %#v.
func (h OTLPHeaders) GoString() string { return h.String() }

// MarshalText masks the values in JSON.
func (h OTLPHeaders) MarshalText() ([]byte, error) { return []byte(h.String()), nil }
