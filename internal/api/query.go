package api

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"roomsensor/internal/roomsensor"
)

const (
	keyParameter   = "key"
	metadataPrefix = "metadata."
)

// parameter is one name=value of a query, decoded.
type parameter struct {
	name, value string
}

// query is the parameters of a request in the order they were sent; each name
// stands once.
type query []parameter

// get is the value of a parameter, or nil where it was not sent. An empty
// value is a value (decision 6).
func (q query) get(name string) *string {
	for i := range q {
		if q[i].name == name {
			return &q[i].value
		}
	}
	return nil
}

// names are the parameters of an endpoint. The name metadata. stands for
// every one that begins so.
type names []string

func (n names) has(name string) bool {
	if strings.HasPrefix(name, metadataPrefix) {
		name = metadataPrefix
	}
	return slices.Contains(n, name)
}

// query reads the parameters of a request (decision 6): all of it must decode,
// and every parameter must be one of the endpoint's, sent once.
func (c *call) query(known ...string) (query, error) {
	return parseQuery(c.Request().URL.RawQuery, known)
}

func parseQuery(raw string, known names) (query, error) {
	sent, err := decodeQuery(raw)
	if err != nil {
		return nil, err
	}
	seen := make(map[string]bool, len(sent))
	for _, p := range sent {
		if err := checkParameter(p, known, seen); err != nil {
			return nil, err
		}
		seen[p.name] = true
	}
	return sent, nil
}

// decodeQuery splits a query as package net/url does, but keeps the order. It
// does not say what failed to decode: the URL may hold a key.
func decodeQuery(raw string) (query, error) {
	malformed := roomsensor.Invalid("", "The query string does not decode. "+
		"Separate parameters by & and percent-encode other characters, such as %, ; and +.")
	var sent query
	for pair := range strings.SplitSeq(raw, "&") {
		if pair == "" {
			continue
		}
		name, value, _ := strings.Cut(pair, "=")
		name, nameErr := url.QueryUnescape(name)
		value, valueErr := url.QueryUnescape(value)
		if nameErr != nil || valueErr != nil || strings.Contains(pair, ";") {
			return nil, malformed
		}
		sent = append(sent, parameter{name, value})
	}
	return sent, nil
}

func checkParameter(p parameter, known names, seen map[string]bool) error {
	shown := masked(p.name)
	switch {
	case !known.has(p.name):
		return roomsensor.Invalid(shown, fmt.Sprintf(
			"This endpoint has no parameter %s. Check its name in the documentation.", shown))
	case seen[p.name]:
		return roomsensor.Invalid(shown, fmt.Sprintf("%s was sent twice. Send it once.", shown))
	case strings.HasPrefix(p.name, metadataPrefix) && !isUTF8(p):
		// The values of other parameters have rules of their own, which say it.
		return roomsensor.Invalid(shown, fmt.Sprintf("%s must be UTF-8.", shown))
	case p.name == metadataPrefix:
		return roomsensor.Invalid(shown, "metadata. must be followed by the key of a tag, as in metadata.room=12.")
	}
	return nil
}

func isUTF8(p parameter) bool { return utf8.ValidString(p.name) && utf8.ValidString(p.value) }

// pasted is what begins like a key, in any letter case.
var pasted = regexp.MustCompile(`(?is)(rs[ki]_).+`)

// masked is the name of a parameter or a field as an error may show it: a key
// that was pasted in a wrong place is not repeated (decision 26).
func masked(name string) string {
	return pasted.ReplaceAllString(strings.ToValidUTF8(name, "\uFFFD"), "${1}...")
}

// tags are the metadata.<key>=value filters (decision 18).
func (q query) tags() map[string]string {
	var tags map[string]string
	for _, p := range q {
		if key, ok := strings.CutPrefix(p.name, metadataPrefix); ok {
			if tags == nil {
				tags = map[string]string{}
			}
			tags[key] = p.value
		}
	}
	return tags
}
