package mapping

import (
	"errors"
	"regexp"
	"strconv"
	"strings"
)

// path is the way to a value (path rule, A11.2).
type path struct {
	text     string // as it was written
	steps    []step
	absolute bool // starts at the message, otherwise at the element
}

// step is a member name, which in a list is an index if it is a whole number.
type step struct {
	name    string
	index   int // negative counts from the end
	isIndex bool
}

// The message itself, and the beginning of paths that start at it.
const (
	wholeMessage  = "$"
	prefixMessage = "$."
)

var wholeNumber = regexp.MustCompile(`^-?[0-9]{1,9}$`)

var (
	errEmptyStep = errors.New("has an empty name: a path is member names joined by dots, such as body.co2")
	errBackslash = errors.New(`has a backslash before another character than "." and "\"`)
)

// parsePath parses a path (path rule, A11.2). "$" alone is the message itself, so that a list can be the message. A
// backslash in a name is written "\\". An error is a predicate such as "has an empty name".
func parsePath(text string) (path, error) {
	p := path{text: text}
	if text == wholeMessage {
		p.absolute = true
		return p, nil
	}
	rest, absolute := strings.CutPrefix(text, prefixMessage)
	p.absolute = absolute
	var name strings.Builder
	for i := 0; i <= len(rest); i++ {
		switch {
		case i == len(rest) || rest[i] == '.':
			if name.Len() == 0 {
				return path{}, errEmptyStep
			}
			p.steps = append(p.steps, newStep(name.String()))
			name.Reset()
		case rest[i] != '\\':
			name.WriteByte(rest[i])
		case i+1 < len(rest) && (rest[i+1] == '.' || rest[i+1] == '\\'):
			i++
			name.WriteByte(rest[i])
		default:
			return path{}, errBackslash
		}
	}
	return p, nil
}

func newStep(name string) step {
	s := step{name: name, isIndex: wholeNumber.MatchString(name)}
	if s.isIndex {
		s.index, _ = strconv.Atoi(name) // At most 9 digits.
	}
	return s
}

// escapeStep writes a member name as a part of a path.
func escapeStep(name string) string {
	return strings.NewReplacer(`\`, `\\`, ".", `\.`).Replace(name)
}
