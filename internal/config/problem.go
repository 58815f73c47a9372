package config

import (
	"fmt"
	"strings"
)

// ValueError is a value that cannot be used. The text names its flag and its
// variable and says what to give instead.
type ValueError struct {
	Flag   string // without its dashes
	Reason string // a sentence without its subject
}

func (p *ValueError) Error() string {
	return fmt.Sprintf("--%s (%s) %s", p.Flag, Variable(p.Flag), p.Reason)
}

// Variable is the name of the environment variable of a flag.
func Variable(flag string) string {
	return strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// rule checks one value; nil is a value that can be used.
type rule func(value string) error

// check applies a rule to a flag's value.
func check(flag, value string, r rule) error {
	if err := r(value); err != nil {
		return &ValueError{Flag: flag, Reason: err.Error()}
	}
	return nil
}

// optional lets an empty value pass: the default is made elsewhere.
func optional(r rule) rule {
	return func(value string) error {
		if value == "" {
			return nil
		}
		return r(value)
	}
}
