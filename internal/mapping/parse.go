package mapping

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"roomsensor/internal/roomsensor"
)

// The limits of a mapping. They bound the work of a message: every path is looked up in every element.
const (
	maxMapping      = 64 << 10 // bytes
	maxAlternatives = 100      // in a list
	maxPaths        = 500      // in a text
)

// Error is what is wrong with a mapping (A11.10).
type Error struct {
	Position string // in the mapping, such as metrics.co2_ppm[1].path; empty for the whole text
	Byte     int    // from 1
	Text     string // a predicate, such as "must be a text"
}

// Error returns a sentence.
func (e *Error) Error() string {
	subject := e.Position
	if subject == "" {
		subject = "The mapping"
	}
	return fmt.Sprintf("%s %s, at byte %d.", subject, e.Text, e.Byte)
}

// Parse parses a mapping strictly (check rule, A11.10). Its error is an *Error.
func Parse(text []byte) (*Mapping, error) {
	return (&Mapping{nulls: defaultNulls}).With(text)
}

// With returns the mapping with the top-level members of another one, which replace its own (A11.1). An empty list
// removes a member. Its error is an *Error.
func (m *Mapping) With(text []byte) (*Mapping, error) {
	if len(text) > maxMapping {
		return nil, &Error{"", maxMapping + 1, fmt.Sprintf("has %d bytes; at most %d are allowed", len(text), maxMapping)}
	}
	p := parser{doc: &document{}}
	if bad := p.doc.read(bytes.TrimPrefix(text, byteOrderMark)); bad != nil {
		return nil, &Error{"", bad.at + 1, bad.text}
	}
	changed := *m
	p.object(0, "", func(name string, at int32, where string) bool { return p.member(&changed, name, at, where) })
	p.require(0, "unit", len(changed.unit) > 0)
	named := false
	for i := range changed.metrics {
		named = named || len(changed.metrics[i]) > 0
	}
	p.require(0, "metrics", named)
	if p.err != nil {
		return nil, p.err
	}
	changed.describe()
	return &changed, nil
}

// parser reads a mapping and keeps the first error.
type parser struct {
	doc   *document
	paths int
	err   error
}

// fail keeps an error at a value, if it is the first one.
func (p *parser) fail(at int32, where, format string, args ...any) {
	if p.err == nil {
		p.err = &Error{where, int(p.doc.written(at).from) + 1, fmt.Sprintf(format, args...)}
	}
}

// require fails if an object lacks a member.
func (p *parser) require(object int32, where string, found bool) {
	if !found {
		p.fail(object, where, "is missing or empty")
	}
}

func (p *parser) member(m *Mapping, name string, at int32, where string) bool {
	switch name {
	case "description":
		m.Description = p.text(at, where)
	case "sampling":
		m.Sampling = p.oneOf(at, where, "whole", "mean")
	case "input":
		m.Lines = p.oneOf(at, where, "json", "line_protocol") == "line_protocol"
	case "each":
		m.each = p.pathList(at, where)
	case "unit":
		m.unit = p.pathList(at, where)
	case "at":
		m.at = list(p, at, where, p.timeAlternative)
	case "metrics":
		m.metrics = p.metrics(at, where)
	case "nulls":
		m.nulls = list(p, at, where, p.text)
	case "signal":
		p.signal(m, at, where)
	case "firmware_version":
		m.firmware = p.pathList(at, where)
	case "ignore":
		m.ignore = list(p, at, where, func(at int32, where string) condition { return p.condition(at, where, true) })
	case "empty":
		m.emptyIgnore = p.oneOf(at, where, "ignore", "not_mapped") == "ignore"
	default:
		return false
	}
	return true
}

// object calls member for each member of an object. member returns false for an unknown name.
func (p *parser) object(at int32, where string, member func(name string, at int32, where string) bool) {
	if p.doc.nodes[at].kind != '{' {
		p.fail(at, where, "must be an object")
		return
	}
	for child := range p.doc.children(at) {
		name := string(p.doc.name(child))
		inside := strings.TrimPrefix(where+"."+escapeStep(name), ".")
		if !member(name, child, inside) {
			p.fail(child, inside, "is not a member of a mapping")
		}
	}
}

// list reads a list of at most maxAlternatives elements.
func list[T any](p *parser, at int32, where string, element func(at int32, where string) T) []T {
	n := &p.doc.nodes[at]
	switch {
	case n.kind != '[':
		p.fail(at, where, "must be a list")
		return nil
	case n.count > maxAlternatives:
		p.fail(at, where, "has %d elements; at most %d are allowed", n.count, maxAlternatives)
		return nil
	}
	all := make([]T, 0, n.count)
	for child := range p.doc.children(at) {
		all = append(all, element(child, fmt.Sprintf("%s[%d]", where, len(all))))
	}
	return all
}

func (p *parser) text(at int32, where string) string {
	if p.doc.nodes[at].kind != '"' {
		p.fail(at, where, "must be a text")
		return ""
	}
	return string(p.doc.content(at))
}

func (p *parser) oneOf(at int32, where, one, other string) string {
	text := p.text(at, where)
	if text != one && text != other {
		p.fail(at, where, "must be %q or %q", one, other)
	}
	return text
}

// pathList reads a path, or a list of alternatives.
func (p *parser) pathList(at int32, where string) []path {
	if p.doc.nodes[at].kind == '[' {
		return list(p, at, where, p.path)
	}
	return []path{p.path(at, where)}
}

func (p *parser) path(at int32, where string) path {
	if p.doc.nodes[at].kind != '"' {
		p.fail(at, where, "must be a path, which is a text")
		return path{}
	}
	if p.paths++; p.paths > maxPaths {
		p.fail(at, where, "is one path too many: at most %d are allowed", maxPaths)
	}
	parsed, err := parsePath(string(p.doc.content(at)))
	if err != nil {
		p.fail(at, where, "%v", err)
	}
	return parsed
}

func (p *parser) timeAlternative(at int32, where string) (a timeAlternative) {
	var format, zone string
	p.object(at, where, func(name string, at int32, where string) bool {
		switch name {
		case "path":
			a.path = p.path(at, where)
		case "format":
			format = p.text(at, where)
		case "time_zone":
			zone = p.text(at, where)
		default:
			return false
		}
		return true
	})
	p.require(at, where+".path", a.path.text != "")
	p.require(at, where+".format", format != "")
	var err error
	if a.format, err = NewTimeFormat(format, zone); err != nil {
		p.fail(at, where, "%v", err)
	}
	return a
}

func (p *parser) metrics(at int32, where string) (metrics [roomsensor.MetricCount][]alternative) {
	p.object(at, where, func(name string, at int32, where string) bool {
		m, ok := roomsensor.MetricNamed(name)
		if ok {
			metrics[m] = list(p, at, where, p.alternative)
		}
		return ok
	})
	return metrics
}

func (p *parser) alternative(at int32, where string) alternative {
	a := alternative{scale: 1}
	p.object(at, where, func(name string, at int32, where string) bool {
		switch name {
		case "path":
			a.path = p.path(at, where)
		case "scale":
			a.scale = p.number(at, where)
		case "offset":
			a.offset = p.number(at, where)
		case "when":
			a.when = new(p.condition(at, where, false))
		default:
			return false
		}
		return true
	})
	p.require(at, where+".path", a.path.text != "")
	return a
}

func (p *parser) number(at int32, where string) float64 {
	x, err := strconv.ParseFloat(string(p.doc.content(at)), 64)
	if p.doc.nodes[at].kind != '0' || err != nil {
		p.fail(at, where, "must be a number that fits into 64 bits")
	}
	return x
}

func (p *parser) signal(m *Mapping, at int32, where string) {
	m.rssi, m.bars = nil, nil
	p.object(at, where, func(name string, at int32, where string) bool {
		switch name {
		case "rssi_dbm":
			m.rssi = p.pathList(at, where)
		case "bars":
			m.bars = p.pathList(at, where)
		default:
			return false
		}
		return true
	})
}

// condition reads {"path","equals"} or, where it may, {"path","absent":true}.
func (p *parser) condition(at int32, where string, mayBeAbsent bool) (c condition) {
	compared := false
	p.object(at, where, func(name string, at int32, where string) bool {
		switch {
		case name == "path":
			c.paths = p.pathList(at, where)
		case name == "equals":
			c.equals, compared = p.scalar(at, where), true
		case name == "absent" && mayBeAbsent:
			if c.absent = p.doc.nodes[at].kind == 't'; !c.absent {
				p.fail(at, where, "must be true")
			}
		default:
			return false
		}
		return true
	})
	p.require(at, where+".path", len(c.paths) > 0)
	if compared == c.absent {
		one := "equals"
		if mayBeAbsent {
			one = `either equals or "absent":true`
		}
		p.fail(at, where, "must have %s", one)
	}
	return c
}

func (p *parser) scalar(at int32, where string) scalar {
	n := &p.doc.nodes[at]
	s := scalar{kind: n.kind, text: string(p.doc.content(at))}
	if n.kind == '{' || n.kind == '[' {
		p.fail(at, where, "must be a text, a number, true, false or null")
	}
	if n.kind == '0' {
		s.number = p.number(at, where)
	}
	return s
}
