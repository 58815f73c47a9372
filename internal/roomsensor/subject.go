package roomsensor

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/google/uuid"
)

// Subject is a person whom assignments of a team name. The person needs no account. One of the fields is set.
type Subject struct {
	Label       *string // label of the assignments
	ExternalRef *string // external_ref of the assignments
}

// SubjectAssignment is an assignment with its device.
type SubjectAssignment struct {
	Assignment

	HardwareID  string
	DisplayName *string
}

// SubjectRecord is what a team stores about a subject, except readings.
type SubjectRecord struct {
	Assignments []SubjectAssignment
	Changes     []AuditEntry // of these assignments and of those that were deleted
	Mentions    []Mention    // in other places
}

// Mention is a place that contains a text about a subject, as far as a search can know.
type Mention struct {
	Table string
	ID    string
	Field string
	Text  string // beginning of a text; empty for bytes
}

// Erasure is what an erasure changed.
type Erasure struct {
	ID                                                     uuid.UUID
	Assignments, AuditEntries, Responses, Notices, Rejects int64
	Mentions                                               []Mention // what is left
}

// Name replaces the labels of a subject.
func (e *Erasure) Name() string { return ErasedName(e.ID) }

// ErasedName replaces the name of an erased person. The start of an id tells such persons apart.
func ErasedName(id uuid.UUID) string { return "erased person " + id.String()[:8] }

// Changed reports whether an erasure changed anything.
func (e *Erasure) Changed() bool {
	return e.Assignments+e.AuditEntries+e.Responses+e.Notices+e.Rejects > 0
}

// minMention is the length in characters from which a text is searched for: shorter ones are everywhere.
const minMention = 3

// Texts finds texts about a subject.
type Texts struct {
	forms   []string // each text, and as JSON with and without escapes for characters beyond ASCII
	pattern string
	find    *regexp.Regexp
}

// NewTexts returns Texts for some texts.
func NewTexts(list ...string) *Texts {
	t := &Texts{}
	var patterns []string
	for _, text := range list {
		if utf8.RuneCountInString(text) < minMention {
			continue
		}
		for _, form := range jsonForms(text) {
			t.forms = append(t.forms, form)
			patterns = append(patterns, anyCase(form))
		}
	}
	t.pattern = strings.Join(patterns, "|")
	t.find = regexp.MustCompile("(?i)" + t.pattern) // Quoted texts are valid.
	return t
}

// anyCase returns a regular expression that matches a text, and each letter beyond ASCII in both cases: a database with
// the locale C knows the cases of ASCII only.
func anyCase(text string) string {
	var pattern strings.Builder
	for _, r := range text {
		if upper, lower := unicode.ToUpper(r), unicode.ToLower(r); r > unicode.MaxASCII && upper != lower {
			pattern.WriteString("[" + string(upper) + string(lower) + "]")
		} else {
			pattern.WriteString(regexp.QuoteMeta(string(r)))
		}
	}
	return pattern.String()
}

// jsonForms returns a text as it is, and as it can be inside a JSON string.
func jsonForms(text string) []string {
	encoded, _ := json.Marshal(text) //nolint:errchkjson // Encoding a string never fails.
	forms := []string{text}
	for _, form := range []string{string(encoded[1 : len(encoded)-1]), asciiForm(text)} {
		if form != text {
			forms = append(forms, form)
		}
	}
	return forms
}

// asciiForm returns a text inside a JSON string in which all characters beyond ASCII have escapes: two of them beyond
// U+FFFF.
func asciiForm(text string) string {
	var form strings.Builder
	for _, r := range text {
		if r <= unicode.MaxASCII {
			quoted := strconv.QuoteToASCII(string(r))
			form.WriteString(quoted[1 : len(quoted)-1])
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) {
			fmt.Fprintf(&form, `\u%04x`, unit)
		}
	}
	return form.String()
}

// None reports whether all texts are too short to be searched for.
func (t *Texts) None() bool { return len(t.forms) == 0 }

// Forms returns the texts as they can be in bytes.
func (t *Texts) Forms() []string { return t.forms }

// Pattern returns a regular expression, which PostgreSQL understands too, that ignores case if the caller does.
func (t *Texts) Pattern() string { return t.pattern }

// Replace replaces each text, in any case, by a name.
func (t *Texts) Replace(text []byte, name string) []byte {
	return t.find.ReplaceAllLiteral(text, []byte(name))
}
