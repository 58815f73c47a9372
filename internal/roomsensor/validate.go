package roomsensor

import (
	"fmt"
	"net/mail"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The limits of decisions 20 and 21.
const (
	MaxDisplayName      = 200 // Unicode code points
	MaxMetadataKeys     = 50
	maxMetadataKey      = 64  // characters
	maxMetadataValue    = 500 // code points
	maxHardwareIDDigits = 20
	maxFirmware         = 64 // characters
)

// IsPlain reports whether text is valid UTF-8 without NUL, which is what the database can store.
func IsPlain(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsRune(text, 0)
}

// IsHardwareID reports whether text is "dev:" followed by 1 to 20 digits.
func IsHardwareID(text string) bool {
	digits, ok := strings.CutPrefix(text, "dev:")
	return ok && digits != "" && len(digits) <= maxHardwareIDDigits && allDigits(digits)
}

// IsFirmwareVersion reports whether text is 1 to 64 of the characters A-Z a-z 0-9 . _ + -.
func IsFirmwareVersion(text string) bool {
	if text == "" || len(text) > maxFirmware {
		return false
	}
	for i := range len(text) {
		switch c := text[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case c == '.', c == '_', c == '+', c == '-':
		default:
			return false
		}
	}
	return true
}

// CheckName checks that a name or label has 1 to 200 code points, none of category Cc (decision 20). Its error, like
// those of the other checks, is a sentence without a subject: the caller puts the name of the field before it.
func CheckName(name string) error {
	n := utf8.RuneCountInString(name)
	switch {
	case !utf8.ValidString(name):
		return ruleError("must be valid UTF-8")
	case n == 0:
		return ruleError("must not be empty")
	case n > MaxDisplayName:
		return ruleError(fmt.Sprintf("has %d characters; at most %d are allowed", n, MaxDisplayName))
	case strings.ContainsFunc(name, func(r rune) bool { return unicode.Is(unicode.Cc, r) }):
		return ruleError("must not contain control characters, such as a line break")
	}
	return nil
}

// CheckMetadataKey checks the key of a tag (decision 21).
func CheckMetadataKey(key string) error {
	if key == "" || len(key) > maxMetadataKey || strings.ContainsFunc(key, notInKey) {
		return ruleError(fmt.Sprintf(
			"must have a key of 1 to %d of the characters A-Z a-z 0-9 _ . : -", maxMetadataKey))
	}
	return nil
}

func notInKey(r rune) bool {
	switch {
	case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
		return false
	}
	return !strings.ContainsRune("_.:-", r)
}

// CheckMetadataValue checks the value of a tag (decision 21). It also refuses NUL, which the database cannot store.
func CheckMetadataValue(value string) error {
	n := utf8.RuneCountInString(value)
	switch {
	case !IsPlain(value):
		return ruleError("must be valid UTF-8 without NUL")
	case n > maxMetadataValue:
		return ruleError(fmt.Sprintf("has %d characters; at most %d are allowed", n, maxMetadataValue))
	}
	return nil
}

// CheckMetadata checks all tags of a device (decision 21).
func CheckMetadata(tags map[string]string) error {
	if len(tags) > MaxMetadataKeys {
		return ruleError(fmt.Sprintf("has %d keys; at most %d are allowed", len(tags), MaxMetadataKeys))
	}
	for key, value := range tags {
		if err := CheckMetadataKey(key); err != nil {
			return err
		}
		if err := CheckMetadataValue(value); err != nil {
			return ruleError(fmt.Sprintf("%s %v", key, err))
		}
	}
	return nil
}

// The limits of email addresses and passwords.
const (
	// MinPassword and MaxPassword are the lengths of passwords in characters. A long password needs no rules about
	// digits or signs (NIST SP 800-63B). The maximum bounds the work of a hash.
	MinPassword = 12
	MaxPassword = 200
	// maxEmail is the longest address that mail allows.
	maxEmail = 254
)

// CheckEmail checks the form of an email address. Like CheckName, its error is a sentence without a subject.
func CheckEmail(email string) error {
	address, err := mail.ParseAddress(email)
	if err != nil || address.Address != email || len(email) > maxEmail || !IsPlain(email) {
		return ruleError("must be an address such as ana@example.com")
	}
	return nil
}

// guessedWords begin the passwords that attackers try first, and so count for nothing. docs/operate/dashboard.md lists
// them.
var guessedWords = []string{
	"roomsensor", "sensor", "dashboard", "password", "passwort", "welcome", "letmein", "iloveyou", "admin", "qwerty",
	"qwertz", "azerty", "asdfgh", "zxcvbn", "abcdef", "123456", "987654", "111111", "000000",
}

const (
	// minGuessed is the length in characters of a word about a person that counts for nothing in a password.
	minGuessed = 4
	// minUnguessed is how many characters a password has beside such words.
	minUnguessed = 8
)

// unguessed returns how many characters of a password belong to no word that an attacker tries first.
func unguessed(password string, about []string) int {
	rest := strings.ToLower(password)
	for _, text := range about {
		for word := range strings.FieldsFuncSeq(strings.ToLower(text), func(r rune) bool {
			return !unicode.IsLetter(r) && !unicode.IsDigit(r)
		}) {
			if utf8.RuneCountInString(word) >= minGuessed {
				rest = strings.ReplaceAll(rest, word, "")
			}
		}
	}
	for _, word := range guessedWords {
		rest = strings.ReplaceAll(rest, word, "")
	}
	return utf8.RuneCountInString(rest)
}

// CheckPassword checks the length of a new password, and that it is more than words about the person and the service.
// about has the name of the person and those of the teams.
func CheckPassword(password, email string, about ...string) error {
	n := utf8.RuneCountInString(password)
	switch {
	case !IsPlain(password):
		return ruleError("contains characters that cannot be stored")
	case n < MinPassword:
		return ruleError(fmt.Sprintf("must have at least %d characters; a sentence is easy to remember", MinPassword))
	case n > MaxPassword:
		return ruleError(fmt.Sprintf("must have at most %d characters", MaxPassword))
	case strings.EqualFold(password, email):
		return ruleError("must not be the email address")
	case unguessed(password, append([]string{email}, about...)) < minUnguessed:
		return ruleError(fmt.Sprintf("must have at least %d characters beside your name and address, those of your team, "+
			"and words such as password", minUnguessed))
	}
	return nil
}

// ruleError is a violated rule, as a sentence without a subject.
type ruleError string

func (e ruleError) Error() string { return string(e) }
