package api

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"roomsensor/internal/cursor"
	"roomsensor/internal/roomsensor"
)

const (
	keyParameter        = "key"
	fromParameter       = "from"
	toParameter         = "to"
	lastParameter       = "last"
	assignmentParameter = "assignment_id"

	// metadataPrefix begins the name of every tag filter, metadata.<key>.
	metadataPrefix = "metadata."
)

// parameter is one name=value of a query, decoded.
type parameter struct {
	name, value string
}

// query has the parameters of a request in the order in which they were sent. No name occurs twice.
type query []parameter

// get returns the value of a parameter, or nil if it was not sent. An empty value is a value (decision 6).
func (q query) get(name string) *string {
	for i := range q {
		if q[i].name == name {
			return &q[i].value
		}
	}
	return nil
}

// tags returns the metadata.<key>=value filters (decision 18).
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

// names are the parameters of an endpoint. metadataPrefix stands for all names that begin with it.
type names []string

func (n names) has(name string) bool {
	if strings.HasPrefix(name, metadataPrefix) {
		name = metadataPrefix
	}
	return slices.Contains(n, name)
}

// query returns the parameters of a request (decision 6): the whole query must decode, and every parameter must be one
// of the known ones and be sent once.
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

// decodeQuery splits a query like net/url does, but keeps the order. Its error does not repeat the part that does not
// decode, because the URL may hold a key.
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
		// The rules of the other parameters exclude invalid UTF-8.
		return roomsensor.Invalid(shown, fmt.Sprintf("%s must be UTF-8.", shown))
	case p.name == metadataPrefix:
		return roomsensor.Invalid(shown, "metadata. must be followed by the key of a tag, as in metadata.room=12.")
	}
	return nil
}

func isUTF8(p parameter) bool { return utf8.ValidString(p.name) && utf8.ValidString(p.value) }

// pastedKey matches text that begins like a key, in any letter case.
var pastedKey = regexp.MustCompile(`(?is)(rs[ki]_).+`)

// masked returns the name of a parameter or a field for an error message. A key that was pasted as a name by mistake is
// not repeated (decision 26).
func masked(name string) string {
	return pastedKey.ReplaceAllString(strings.ToValidUTF8(name, "\uFFFD"), "${1}...")
}

// deviceID returns the id in the path (decision 7).
func (c *call) deviceID() (uuid.UUID, error) {
	return parseID("device_id", c.Param("device_id"))
}

// parseID accepts only the hyphenated form of 36 characters, in any letter case (decision 7).
func parseID(param, text string) (uuid.UUID, error) {
	if len(text) == len("00000000-0000-0000-0000-000000000000") {
		if id, err := uuid.Parse(text); err == nil {
			return id, nil
		}
	}
	return uuid.Nil, roomsensor.Invalid(param, param+" must be a uuid of 36 characters, "+
		"for example 0b5e7a52-6c1f-4f0a-9d3e-2f6a1c8b7d90. A hardware_id is not accepted anywhere.")
}

// timeRange is what the parameters of a request select in time: a window, an assignment, or both.
type timeRange struct {
	request    roomsensor.WindowRequest // the parameters from, to and last
	window     roomsensor.Window        // of request, without the assignment; set on first pages only
	assignment *uuid.UUID               // the parameter assignment_id
}

// readTimeRange reads the parameters of time and assignment. Rules about from, to and now relative to each other apply
// to a first page only: with a cursor, a parameter that was not sent has the value of the first page.
func (s *server) readTimeRange(q query) (timeRange, error) {
	var times timeRange
	var err error
	times.request, err = roomsensor.ParseWindow(q.get(fromParameter), q.get(toParameter), q.get(lastParameter))
	if err != nil {
		return timeRange{}, err
	}
	if q.get(cursorParameter) == nil {
		if times.window, err = times.request.Resolve(s.now()); err != nil {
			return timeRange{}, err
		}
	}
	if text := q.get(assignmentParameter); text != nil {
		id, err := parseID(assignmentParameter, *text)
		if err != nil {
			return timeRange{}, err
		}
		times.assignment = &id
	}
	return times, nil
}

// within returns the part of the window within the assignment, or the whole assignment if no parameter of time was sent
// (spec 4, readings, rule 2).
func (t timeRange) within(assignment *roomsensor.Assignment) roomsensor.Window {
	if t.request.IsZero() {
		return assignment.Window()
	}
	return t.window.Intersect(assignment.Window())
}

// sameTimeRange compares the parameters that were sent with a cursor with those of the first page, by value
// (decision 12). With last, from and to are ignored.
func sameTimeRange(q query, times timeRange, state *cursor.State) error {
	first := state.Request
	if first.IsZero() && state.Assignment == nil {
		first.Last = roomsensor.DefaultWindow
	}
	for _, p := range q {
		same := true
		switch p.name {
		case lastParameter:
			same = times.request.Last == first.Last
		case fromParameter:
			same = times.request.Last > 0 || sameInstant(times.request.From, first.From)
		case toParameter:
			same = times.request.Last > 0 || sameInstant(times.request.To, first.To)
		case assignmentParameter:
			same = state.Assignment != nil && *times.assignment == *state.Assignment
		}
		if !same {
			return differs(p.name)
		}
	}
	return nil
}

func sameInstant(a, b *time.Time) bool {
	return a != nil && b != nil && a.Equal(*b)
}
