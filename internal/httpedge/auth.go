package httpedge

import (
	"context"
	"crypto/sha256"
	"errors"
	"strings"
	"sync"
	"time"

	"roomsensor/internal/roomsensor"
)

const (
	// maxKeyIDLength is far beyond the ids that the service makes. Keys with a longer id are not looked up.
	maxKeyIDLength = 128
	// refusalAge is the age up to which a refusal is repeated from memory. A key that another tool stores with SQL, or
	// extends, may have been refused before, and nothing in memory may be older than 5 seconds (decision 43).
	refusalAge = 4 * time.Second
	// maxRefusals bounds the memory for refusals, of about 100 bytes each.
	maxRefusals = 10_000
)

// KeyCodes are the error codes for one kind of key, and what messages say about it.
type KeyCodes struct {
	kind, otherKind                    roomsensor.KeyKind
	name                               string // of the kind
	wrongKind                          string // the message for a key of otherKind
	missing, invalid, revoked, expired roomsensor.Code
}

// APIKeyCodes returns the codes for the keys of the API.
func APIKeyCodes() *KeyCodes {
	return &KeyCodes{
		kind:      roomsensor.APIKey,
		missing:   roomsensor.CodeAPIKeyMissing,
		invalid:   roomsensor.CodeAPIKeyInvalid,
		revoked:   roomsensor.CodeAPIKeyRevoked,
		expired:   roomsensor.CodeAPIKeyExpired,
		name:      "API key",
		otherKind: roomsensor.IngestKey,
		wrongKind: "This is an upload credential, which only the receiver accepts. Send an API key; it begins with rsk_.",
	}
}

// IngestKeyCodes returns the codes for the keys of the receiver.
func IngestKeyCodes() *KeyCodes {
	return &KeyCodes{
		kind:      roomsensor.IngestKey,
		missing:   roomsensor.CodeIngestKeyMissing,
		invalid:   roomsensor.CodeIngestKeyInvalid,
		revoked:   roomsensor.CodeIngestKeyRevoked,
		expired:   roomsensor.CodeIngestKeyExpired,
		name:      "upload credential",
		otherKind: roomsensor.APIKey,
		wrongKind: "This is an API key, which only the API accepts. Send an upload credential; it begins with rsi_.",
	}
}

// Bearer returns the text of the key in the lines of the Authorization header. The scheme is case-insensitive. Its
// errors are the code for a missing key and, if the header is malformed or was sent twice, the code for an invalid one
// (decision 24), with a message that states the fix (decision 47).
func (c *KeyCodes) Bearer(headers []string) (text string, err error) {
	missing := c.missing.New()
	switch len(headers) {
	case 0:
		return "", missing
	case 1:
	default:
		return "", c.InvalidWith("The header Authorization was sent more than once. Send it once.")
	}
	scheme, text, _ := strings.Cut(headers[0], " ")
	switch {
	case strings.EqualFold(scheme, "Bearer"):
		return strings.Trim(text, " "), nil
	case strings.EqualFold(scheme, "Basic"):
		return "", c.InvalidWith("Basic credentials are not accepted. " + missing.Message)
	case strings.HasPrefix(scheme, string(c.otherKind)+"_"):
		return "", c.InvalidWith(c.wrongKind)
	}
	return "", c.InvalidWith("The header Authorization does not begin with Bearer. " + missing.Message)
}

// InvalidWith returns an error with the code for an invalid key and a message of its own.
func (c *KeyCodes) InvalidWith(message string) *roomsensor.Error {
	return roomsensor.NewError(c.invalid, "", message)
}

// malformed returns the error for a text that ParseKey does not accept.
func (c *KeyCodes) malformed(text string) *roomsensor.Error {
	prefix := string(c.kind) + "_"
	copyAll := " Copy the whole " + c.name + ", from " + prefix + " to its last character."
	switch {
	case strings.HasPrefix(text, string(c.otherKind)+"_"):
		return c.InvalidWith(c.wrongKind)
	case strings.HasPrefix(text, prefix):
		return c.InvalidWith("This " + c.name + " is cut off or was changed: its checksum is wrong." + copyAll)
	}
	return c.InvalidWith("This is not a complete " + c.name + "." + copyAll)
}

// KeySource finds keys by their public ids.
type KeySource interface {
	// Cached returns a key from memory.
	Cached(id string) (key roomsensor.Key, ok bool)
	// Find returns a key, or roomsensor.ErrNotFound, for a request that the key in memory did not admit.
	Find(ctx context.Context, id string) (roomsensor.Key, error)
}

// Authenticator checks the keys of requests. The key in memory can admit a request; before a refusal it is looked up.
// A refusal is remembered by the whole text of the key, so that it costs one lookup however often the text is sent. A
// key that was just created works at once, because nobody can have sent its text before. A text with a wrong checksum
// is refused without a lookup (decision 44).
type Authenticator struct {
	keys    KeySource
	codes   *KeyCodes
	now     func() time.Time
	matches func(key *roomsensor.Key, secret string) bool // in constant time; tests count the calls

	mu      sync.Mutex
	refused map[[sha256.Size]byte]refusal // by the hash of the text
}

type refusal struct {
	err   error
	until time.Time
}

// NewAuthenticator makes an Authenticator for one kind of key.
func NewAuthenticator(keys KeySource, codes *KeyCodes, now func() time.Time) *Authenticator {
	return &Authenticator{
		keys: keys, codes: codes, now: now, matches: (*roomsensor.Key).Matches,
		refused: map[[sha256.Size]byte]refusal{},
	}
}

// Authenticate returns the key with a text, or the reason of the refusal. An unknown key costs the same lookup and the
// same number of comparisons as a wrong secret, whether or not the key is in memory (decision 24).
func (a *Authenticator) Authenticate(ctx context.Context, text string) (roomsensor.Key, error) {
	id, secret, ok := roomsensor.ParseKey(a.codes.kind, text)
	if !ok {
		return roomsensor.Key{}, a.codes.malformed(text)
	}
	key, _ := a.keys.Cached(id)
	if a.check(&key, secret) == nil {
		return key, nil
	}
	hash := sha256.Sum256([]byte(text))
	if err := a.refusal(hash); err != nil {
		return roomsensor.Key{}, err
	}
	key = roomsensor.Key{}
	if len(id) <= maxKeyIDLength {
		found, err := a.keys.Find(ctx, id)
		if err != nil && !errors.Is(err, roomsensor.ErrNotFound) {
			return roomsensor.Key{}, err
		}
		key = found
	}
	if err := a.check(&key, secret); err != nil {
		a.remember(hash, err)
		return roomsensor.Key{}, err
	}
	return key, nil
}

// refusal returns the error of a text that was refused, or nil.
func (a *Authenticator) refusal(hash [sha256.Size]byte) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	r, ok := a.refused[hash]
	if !ok || a.now().After(r.until) {
		return nil
	}
	return r.err
}

func (a *Authenticator) remember(hash [sha256.Size]byte, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.refused) >= maxRefusals {
		clear(a.refused)
	}
	a.refused[hash] = refusal{err: err, until: a.now().Add(refusalAge)}
}

// check returns the reason why a key does not admit a request. Revoked and expired are reported only if the secret
// matches (decision 24).
func (a *Authenticator) check(key *roomsensor.Key, secret string) error {
	switch {
	case !a.matches(key, secret):
		return a.codes.invalid.New()
	case key.RevokedAt != nil:
		return a.codes.revoked.New()
	case key.ExpiresAt != nil && !a.now().Before(*key.ExpiresAt):
		return a.codes.expired.New()
	}
	return nil
}
