// Package canary looks for secrets in what a service wrote: logs, metrics, profiles, answers, tables. It is for tests
// only.
package canary

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
)

// Least is how many characters of a secret betray it; one that is shorter cannot be told from other text.
const Least = 12

// Find returns the names of the secrets that a text holds: a piece of 12 characters, or the secret in hexadecimal or
// base64, in any letter case. It panics at a secret that is shorter, which would be found everywhere.
func Find(text []byte, secrets map[string]string) (names []string) {
	text = bytes.ToLower(text)
	for name, secret := range secrets {
		if holds(text, secret) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func holds(text []byte, secret string) bool {
	for _, form := range forms(secret) {
		if len(form) < Least {
			panic(fmt.Sprintf("a secret of %d characters is too short to be looked for", len(form)))
		}
		form = bytes.ToLower(form)
		for i := range len(form) - Least + 1 {
			if bytes.Contains(text, form[i:i+Least]) {
				return true
			}
		}
	}
	return false
}

// forms are the texts that a secret becomes on its way. In base64 it is looked for wherever it begins within a group
// of three bytes, without the ends, which depend on what is around it.
func forms(secret string) [][]byte {
	all := [][]byte{[]byte(secret), hex.AppendEncode(nil, []byte(secret))}
	for begins := range 3 {
		inner := []byte(secret)[begins:]
		all = append(all, base64.StdEncoding.AppendEncode(nil, inner[:len(inner)/3*3]))
	}
	return all
}

// A secret of a key that the service made, in either letter case.
var ofKey = regexp.MustCompile(`[a-z2-7]{52}|[A-Z2-7]{52}`)

// leastVariety tells a secret from a character that is repeated: random ones have 20 of 32 and more.
const leastVariety = 12

// Keys returns what looks like the secret of a key, whosever it is: so that a text can be looked through by who does
// not know the keys.
func Keys(text []byte) (found []string) {
	for _, match := range ofKey.FindAll(text, -1) {
		letters := slices.Clone(match)
		slices.Sort(letters)
		if len(slices.Compact(letters)) >= leastVariety {
			found = append(found, string(match))
		}
	}
	return found
}
