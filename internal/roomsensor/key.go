package roomsensor

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"regexp"
	"strings"
	"time"

	"github.com/google/uuid"
)

// Scope is what an API key allows (spec 5, rule 3).
type Scope string

// The scopes of spec 5, rule 3. Ingest keys have none: they only upload.
const (
	ScopeRead      Scope = "read"
	ScopeReadWrite Scope = "read_write"
)

// KeyKind is the first part of a key, which distinguishes API keys from ingest keys.
type KeyKind string

// The two kinds of keys (decision 24).
const (
	APIKey    KeyKind = "rsk"
	IngestKey KeyKind = "rsi"
)

// Key is what the service stores of an API key or ingest key: never the secret itself.
type Key struct {
	ID           string // public identifier, the second part of the key
	TeamID       uuid.UUID
	SecretSHA256 [sha256.Size]byte // hash of the text of the third part, its checksum included
	Scope        Scope             // empty for an ingest key
	Source       *KeySource        // of an ingest key that is bound to a source (A10.1); nil for all others
	Label        *string
	CreatedAt    time.Time
	ExpiresAt    *time.Time
	RevokedAt    *time.Time
	LastUse      *KeyUse // only in the list of a team's keys; nil before the first use
	MadeBy       string  // only in that list: address of the person; empty for an operator and for a deleted person
	MakerLeft    bool    // only in that list: the person is not a member of the team any more
}

// KeySource is the source at which an ingest key is valid.
type KeySource struct {
	ID     uuid.UUID
	Format string // empty if the source is disabled or was deleted; unknown in lists
}

// KeyUse is the last use of a key, which is stored once a minute at most.
type KeyUse struct {
	KeyID  string
	At     time.Time
	Client string // the User-Agent of the request, shortened; empty if it had none
}

// ErrKeyExists means that a key with the same public id exists.
var ErrKeyExists = errors.New("a key with this id exists")

// KeyNotValidError means that a key was revoked or has expired.
type KeyNotValidError struct {
	ID     string
	TeamID uuid.UUID
}

func (e *KeyNotValidError) Error() string { return "key " + e.ID + " was revoked or has expired" }

// RevokeDelay is the time within which a revoked key is refused everywhere (decision 24).
const RevokeDelay = 5 * time.Second

// KeyPosition is a position in the sequence of changes to keys. Those of different servers cannot be compared.
type KeyPosition struct {
	OldestRunning int64     // number of the oldest transaction that was running
	ServerStarted time.Time // identifies the database server
}

// secretEncoding is base32 in lower case: no character needs escaping in a URL, and none is the separator.
var secretEncoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

const (
	keyIDBytes     = 10 // 16 characters
	secretBytes    = 32 // 256 random bits (decision 24)
	checksumLength = 6  // characters
)

// GenerateKey creates a key of the form <kind>_<id>_<secret>. The text is shown once and never stored.
func GenerateKey(kind KeyKind) (id, text string, secretSHA256 [sha256.Size]byte) {
	raw := make([]byte, keyIDBytes)
	_, _ = rand.Read(raw) // It never returns an error: it aborts the process instead.
	id = secretEncoding.EncodeToString(raw)
	text, secretSHA256 = GenerateKeyOf(kind, id)
	return id, text, secretSHA256
}

// GenerateKeyOf is GenerateKey for a public id.
func GenerateKeyOf(kind KeyKind, id string) (text string, secretSHA256 [sha256.Size]byte) {
	raw := make([]byte, secretBytes)
	_, _ = rand.Read(raw) // It never returns an error: it aborts the process instead.
	text = FormatKey(kind, id, secretEncoding.EncodeToString(raw))
	_, secret, _ := ParseKey(kind, text)
	return text, sha256.Sum256([]byte(secret))
}

// KeyIDOf returns the public id of the key that a form of a team asks for. The same form, sent twice, asks for the same
// key. Nobody can choose the id of a key of another team.
func KeyIDOf(teamID, form uuid.UUID) string {
	sum := sha256.Sum256(append(teamID[:], form[:]...))
	return secretEncoding.EncodeToString(sum[:keyIDBytes])
}

// FormatKey returns the text of a key. Its secret consists of a random text and the checksum.
func FormatKey(kind KeyKind, id, random string) string {
	text := string(kind) + "_" + id + "_" + random
	return text + checksum(text)
}

// checksum returns the upper 30 bits of the CRC-32 of a text, 5 bits per character (decision 44).
func checksum(text string) string {
	sum := binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE([]byte(text)))
	return secretEncoding.EncodeToString(sum)[:checksumLength]
}

// ParseKey splits <kind>_<id>_<secret>; ok is false for any other text, and if the checksum at its end is wrong.
func ParseKey(kind KeyKind, text string) (id, secret string, ok bool) {
	rest, ok := strings.CutPrefix(text, string(kind)+"_")
	if !ok {
		return "", "", false
	}
	id, secret, _ = strings.Cut(rest, "_")
	if id == "" || len(secret) <= checksumLength || !IsPlain(id) {
		return "", "", false
	}
	end := len(text) - checksumLength
	return id, secret, text[end:] == checksum(text[:end])
}

// pastedKey matches text that begins like a key, in any letter case.
var pastedKey = regexp.MustCompile(`(?is)(rs[ki]_).+`)

// Masked returns the name of a parameter or a field for a message. A key that was pasted as a name by mistake is not
// repeated (decision 26).
func Masked(name string) string {
	return pastedKey.ReplaceAllString(strings.ToValidUTF8(name, "\uFFFD"), "${1}...")
}

// Matches compares a secret in constant time. For an unknown key, callers use a zero Key: it takes as long and never
// matches, so that timing does not reveal which ids exist.
func (k *Key) Matches(secret string) bool {
	sum := sha256.Sum256([]byte(secret))
	return subtle.ConstantTimeCompare(sum[:], k.SecretSHA256[:]) == 1 && k.ID != ""
}

// RateLimit is the number of requests per key that are allowed in any RateWindow (spec 8, Rate). The database applies
// the limit: rate_window_hits in schema/ has both numbers of its own.
const (
	RateLimit  = 600
	RateWindow = 10 * time.Minute
)

// RateVerdict reports whether a request is within the limit of its key (decision 25).
type RateVerdict struct {
	Allowed   bool
	Remaining int // requests that are still allowed right now, after this one
	// Reset is the time until the oldest counted request leaves the window. After a denied request, it is the time
	// until a request is allowed again.
	Reset time.Duration
	// Position is that of the primary while the request was counted; zero if no standby serves reads.
	Position Position
}

// IdempotencyKey identifies a change that must run only once, however often it is sent (decision 23).
type IdempotencyKey struct {
	KeyID      string // of the API key
	TeamID     uuid.UUID
	Method     string
	Path       string // with the id in lower case, without the query
	Key        string // value of the Idempotency-Key header
	BodySHA256 [sha256.Size]byte
}

// maxNewKeys is how many keys of a kind people of a team may create in keyPeriod. Receivers hold the upload credentials
// of all teams in memory, and keys are kept after their end.
const (
	maxNewKeys = 200
	keyPeriod  = 30 * 24 * time.Hour
)

// CheckNewKey returns an error for the field of a form if people of a team created too many keys of a kind, of which
// all are given.
func CheckNewKey(field string, all []Key, now time.Time) error {
	recent := 0
	for i := range all {
		if all[i].CreatedAt.After(now.Add(-keyPeriod)) {
			recent++
		}
	}
	if recent < maxNewKeys {
		return nil
	}
	return Invalid(field, "Your team created 200 keys of this kind in the last 30 days, which is the limit. "+
		"Use the keys that exist, or ask your operator for more.")
}
