package roomsensor

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"strings"
	"time"

	"github.com/google/uuid"
)

// Scope is what a key allows (spec 5, rule 3).
type Scope string

// The scopes of spec 5, rule 3. Upload is of the receiver's credentials, which
// the API knows nothing of.
const (
	ScopeRead      Scope = "read"
	ScopeReadWrite Scope = "read_write"
)

// KeyKind is the prefix that tells a key of the API from one of the receiver.
type KeyKind string

// The two kinds of credentials (decision 24; the receiver's are a kind of their own).
const (
	APIKey    KeyKind = "rsk"
	IngestKey KeyKind = "rsi"
)

// Key is what the service keeps of a credential: never the secret itself.
type Key struct {
	ID           string
	TeamID       uuid.UUID
	SecretSHA256 [sha256.Size]byte // of the secret's text as it stands in the key
	Scope        Scope             // empty on an ingest key
	Label        *string
	CreatedAt    time.Time
	ExpiresAt    *time.Time
	RevokedAt    *time.Time
}

// Secrets are base32 in lower case: no character needs escaping in a URL, and
// none is the separator.
var secretEncoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

const (
	keyIDBytes  = 10 // 16 characters
	secretBytes = 32 // 256 random bits (decision 24)
)

// GenerateKey makes a new credential. The text is shown once and not kept.
func GenerateKey(kind KeyKind) (id, text string, secretSHA256 [sha256.Size]byte) {
	raw := make([]byte, keyIDBytes+secretBytes)
	_, _ = rand.Read(raw) // It never fails: the process ends instead.
	id = secretEncoding.EncodeToString(raw[:keyIDBytes])
	secret := secretEncoding.EncodeToString(raw[keyIDBytes:])
	return id, string(kind) + "_" + id + "_" + secret, sha256.Sum256([]byte(secret))
}

// ParseKey splits <kind>_<id>_<secret>; ok is false for any other text.
func ParseKey(kind KeyKind, text string) (id, secret string, ok bool) {
	rest, ok := strings.CutPrefix(text, string(kind)+"_")
	if !ok {
		return "", "", false
	}
	id, secret, ok = strings.Cut(rest, "_")
	return id, secret, ok && id != "" && secret != "" && IsPlain(id)
}

// BearerToken takes the credential out of the value of an Authorization header;
// the letter case of the scheme does not matter (decision 24). ok is false for
// another scheme.
func BearerToken(header string) (token string, ok bool) {
	scheme, token, _ := strings.Cut(header, " ")
	return strings.Trim(token, " "), strings.EqualFold(scheme, "Bearer")
}

// Matches compares a secret in constant time. A zero Key stands for an unknown
// one: it costs the same and never matches.
func (k *Key) Matches(secret string) bool {
	sum := sha256.Sum256([]byte(secret))
	return subtle.ConstantTimeCompare(sum[:], k.SecretSHA256[:]) == 1 && k.ID != ""
}
