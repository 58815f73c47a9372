package httpedge

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// What looks like a secret in a text of a client: a key, also without its beginning. The ids of the service have fewer
// letters and digits in a row.
var (
	keyLike = regexp.MustCompile(`(?i)(rs[ki]_)\S+`)
	longRun = regexp.MustCompile(`[0-9A-Za-z]{24,}`)
)

const lettersAndDigits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// maxQuoted is the number of bytes that a message repeats of a name.
const maxQuoted = 64

// Quoted returns a name that a client sent, in quotes, for a message.
func Quoted(name string) string { return `"` + Shown(name, maxQuoted) + `"` }

// Shown returns a text of a client for a message or the log: printable, without what looks like a secret, and cut to
// maxBytes and three dots.
func Shown(text string, maxBytes int) string {
	cut := len(text) > 2*maxBytes
	if cut { // The rest would be cut anyway. The beginning of a secret must not stay at the end.
		text = strings.TrimRight(text[:2*maxBytes], lettersAndDigits)
	}
	text = keyLike.ReplaceAllString(text, "${1}...")
	text = longRun.ReplaceAllString(text, "...")
	text = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return utf8.RuneError
	}, text)
	if len(text) > maxBytes {
		text, cut = strings.ToValidUTF8(text[:maxBytes], ""), true
	}
	if cut {
		text += "..."
	}
	return text
}
