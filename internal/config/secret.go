package config

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"
)

// Secret is a URL or key whose secret parts are masked when it is printed or logged. Read returns the value. One that
// begins with InFile names a file that has it.
type Secret string

// InFile begins a secret that is the content of a file: file:/run/secrets/database-url.
const InFile = "file:"

var errSecretFile = errors.New("names a file that is empty or that this process cannot read")

// Read returns the value. That of a file is read by each call, so that it may change while a process runs; a line
// end at its end does not count.
func (s Secret) Read() (string, error) {
	path, inFile := strings.CutPrefix(string(s), InFile)
	if !inFile {
		return string(s), nil
	}
	content, err := os.ReadFile(path) //nolint:gosec // The operator chooses the file.
	text := strings.TrimRight(string(content), "\r\n")
	if err != nil || text == "" {
		return "", errSecretFile // The cause would repeat the name, which may be a secret that was given by mistake.
	}
	return text, nil
}

// FromFile returns the value of a setting that is in a file: of a Secret, which is read when it is used, the name of
// the file, and of a Password the content. It reports false for a setting that cannot be in a file.
func FromFile(flag *kong.Flag, path string) (value string, ok bool, err error) {
	switch flag.Target.Type() {
	case reflect.TypeFor[Secret]():
		return InFile + path, true, nil
	case reflect.TypeFor[Password]():
		if value, err = Secret(InFile + path).Read(); err != nil {
			return "", true, &ValueError{Flag: flag.Name, Reason: err.Error()}
		}
		return value, true, nil
	}
	return "", false, nil
}

// Shown returns a value of a setting for people who may not see secrets. All of a value that is not valid is masked,
// because what is secret in it is unknown.
func Shown(flag *kong.Flag, text string) string {
	value := reflect.New(flag.Target.Type()).Elem()
	err := flag.Parse(kong.ScanAsType(kong.FlagValueToken, text), value)
	if rule := rules[flag.Tag.Get("rule")]; rule != nil {
		err = cmp.Or(err, rule(text))
	}
	if shown, ok := reflect.TypeAssert[fmt.Stringer](value); ok && err == nil {
		return shown.String()
	}
	if err != nil {
		return masked
	}
	return Mask(text)
}

func (s Secret) String() string { return Mask(string(s)) }

// GoString masks the value in %#v.
func (s Secret) GoString() string { return strconv.Quote(s.String()) }

// MarshalText masks the value in JSON.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Password is a value that is never printed or logged. Convert it to string to use it.
type Password string

func (Password) String() string { return masked }

// GoString masks the value in %#v.
func (Password) GoString() string { return masked }

// MarshalText masks the value in JSON.
func (Password) MarshalText() ([]byte, error) { return []byte(masked), nil }
