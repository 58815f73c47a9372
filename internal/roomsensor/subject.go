package roomsensor

import (
	"fmt"
	"regexp"
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

// SubjectRecord is what a team stores about a subject, except readings.
type SubjectRecord struct {
	Assignments []DeviceAssignment
	Notes       []Note       // of these assignments
	Changes     []AuditEntry // of these assignments, of those that were deleted, and of their notes
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
	ID                                                                      uuid.UUID
	Assignments, Notes, AuditEntries, Responses, Notices, Messages, Rejects int64
	Mentions                                                                []Mention // what is left
}

// Name replaces the labels of a subject.
func (e *Erasure) Name() string { return ErasedName(e.ID) }

// ErasedName replaces the name of an erased person. The start of an id tells such persons apart.
func ErasedName(id uuid.UUID) string { return "erased person " + id.String()[:8] }

// Changed reports whether an erasure changed anything.
func (e *Erasure) Changed() bool {
	return e.Assignments+e.Notes+e.AuditEntries+e.Responses+e.Notices+e.Messages+e.Rejects > 0
}

// minMention is the length in characters from which a text is searched for: shorter ones are everywhere.
const minMention = 3

// Texts finds texts about a subject, whatever holds them: plain text, JSON in any of its spellings, or bytes.
type Texts struct {
	pattern string
	find    *regexp.Regexp // nil without a text
}

// NewTexts returns Texts for some texts.
func NewTexts(list ...string) *Texts {
	var patterns []string
	for _, text := range list {
		if utf8.RuneCountInString(text) < minMention {
			continue
		}
		var pattern strings.Builder
		for _, r := range text {
			pattern.WriteString("(?:" + strings.Join(spellings(r), "|") + ")")
		}
		patterns = append(patterns, pattern.String())
	}
	if patterns == nil {
		return &Texts{}
	}
	pattern := strings.Join(patterns, "|")
	return &Texts{pattern, regexp.MustCompile(pattern)} // Quoted texts are valid.
}

// spellings returns regular expressions for a character in each letter case, because a database with the locale C knows
// the cases of ASCII only: the character itself, the character in JSON, also in JSON that is a string of other JSON,
// and its bytes as PostgreSQL's encode(..., 'escape') prints them.
func spellings(r rune) (all []string) {
	for c := r; ; {
		all = append(all, regexp.QuoteMeta(string(c)), escaped(c))
		if strings.ContainsRune(`"\/`, c) {
			all = append(all, `\\+`+regexp.QuoteMeta(string(c)))
		}
		if c > unicode.MaxASCII {
			var bytes strings.Builder
			for _, b := range []byte(string(c)) {
				fmt.Fprintf(&bytes, `\\%o`, b)
			}
			all = append(all, bytes.String())
		}
		if c = unicode.SimpleFold(c); c == r {
			return all
		}
	}
}

// escaped returns a regular expression for the escape of a character in JSON: two of them beyond U+FFFF.
func escaped(r rune) string {
	var pattern strings.Builder
	for _, unit := range utf16.AppendRune(nil, r) {
		pattern.WriteString(`\\+u`)
		for _, digit := range fmt.Sprintf("%04x", unit) {
			if unicode.IsLetter(digit) {
				fmt.Fprintf(&pattern, "[%c%c]", digit, unicode.ToUpper(digit))
			} else {
				pattern.WriteRune(digit)
			}
		}
	}
	return pattern.String()
}

// None reports whether all texts are too short to be searched for.
func (t *Texts) None() bool { return t.find == nil }

// Pattern returns a regular expression with which PostgreSQL finds the texts: in text as it is, in bytes after
// encode(..., 'escape'). It distinguishes letter case by itself. It is empty if None.
func (t *Texts) Pattern() string { return t.pattern }

// In reports whether bytes contain one of the texts.
func (t *Texts) In(text []byte) bool { return t.find != nil && t.find.Match(text) }

// Replace replaces each text by a name.
func (t *Texts) Replace(text []byte, name string) []byte {
	if t.find == nil {
		return text
	}
	return t.find.ReplaceAllLiteral(text, []byte(name))
}
