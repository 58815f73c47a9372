// Package secretscan searches output of the service for secrets and for internals: logs, metrics, profiles, responses,
// tables.
package secretscan

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"slices"
)

// Least is the length of the part of a secret that counts as a leak. A shorter text can occur by chance.
const Least = 12

// Find returns the names of the secrets of which a text contains at least Least characters: as they are, in hexadecimal
// or in base64, in any letter case. It panics if a secret is shorter than that.
func Find(text []byte, secrets map[string]string) (names []string) {
	text = bytes.ToLower(text)
	for name, secret := range secrets {
		if contains(text, secret) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func contains(text []byte, secret string) bool {
	for _, form := range forms(secret) {
		if len(form) < Least {
			panic(fmt.Sprintf("a secret of %d characters is too short to search for", len(form)))
		}
		form = bytes.ToLower(form)
		if !mayContain(text, form) {
			continue
		}
		for i := range len(form) - Least + 1 {
			if bytes.Contains(text, form[i:i+Least]) {
				return true
			}
		}
	}
	return false
}

// mayContain returns false, more quickly than a search for every part, if a text contains no part of a secret. Any
// Least characters of the secret include a block of half as many that starts at a multiple of that half.
func mayContain(text, form []byte) bool {
	const half = Least / 2
	for i := 0; i+half <= len(form); i += half {
		if bytes.Contains(text, form[i:i+half]) {
			return true
		}
	}
	return false
}

// forms returns the encodings of a secret. Base64 encodes groups of three bytes, so there is one form for each position
// in a group at which the secret can start; the end of the secret is left out, because it depends on the next byte.
func forms(secret string) [][]byte {
	all := [][]byte{[]byte(secret), hex.AppendEncode(nil, []byte(secret))}
	for offset := range 3 {
		inner := []byte(secret)[offset:]
		all = append(all, base64.StdEncoding.AppendEncode(nil, inner[:len(inner)/3*3]))
	}
	return all
}

// secretLength is the number of characters of the secret of a key, its checksum included. They are letters and the
// digits 2 to 7.
const secretLength = 58

// minVariety is the number of different characters that tells a secret from repeated text. Random secrets have at least
// 20 of the 32.
const minVariety = 12

// Keys returns the parts of a text that look like the secret of a key, in either letter case. The caller does not need
// to know the keys. It does not use a regular expression, because tests search every response.
func Keys(text []byte) (found []string) {
	lower, upper := 0, 0 // characters in a row that a secret in this letter case can have
	for i, c := range text {
		digit := c >= '2' && c <= '7'
		lower, upper = lower+1, upper+1
		if !digit && (c < 'a' || c > 'z') {
			lower = 0
		}
		if !digit && (c < 'A' || c > 'Z') {
			upper = 0
		}
		if max(lower, upper) < secretLength {
			continue
		}
		lower, upper = 0, 0
		match := text[i+1-secretLength : i+1]
		letters := slices.Sorted(slices.Values(match))
		if len(slices.Compact(letters)) >= minVariety {
			found = append(found, string(match))
		}
	}
	return found
}
