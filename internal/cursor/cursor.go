// Package cursor makes and reads the opaque cursors of lists. A cursor holds
// all that the next page needs, encrypted and authenticated, so that any
// replica that shares the secret can go on with a walk (decision 11).
package cursor

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/roomsensor"
)

// Lifetime is how long a cursor lives from its own issue (decision 11).
const Lifetime = 24 * time.Hour

// SecretBytes is the length of the secret: an AES-256 key.
const SecretBytes = 32

// version is the first byte of every cursor. Another layout gets another
// number, and cursors of the old one are then cursor_invalid.
const version = 1

// ErrCorrupted says that a text is no cursor of this service.
var ErrCorrupted = errors.New("the cursor is corrupted")

// Endpoint is the list that a cursor belongs to.
type Endpoint uint8

// The lists of spec 4.
const (
	Devices Endpoint = iota + 1
	CurrentDevices
	Assignments
	Readings
)

// Walk is what the first page fixed and where the last one ended.
type Walk struct {
	Endpoint Endpoint
	KeyID    string
	Device   uuid.UUID // uuid.Nil where the list is not of one device
	IssuedAt time.Time // to the microsecond
	Limit    int

	Metadata   map[string]string        // the filters of a list of devices
	Request    roomsensor.WindowRequest // the time parameters of the first page
	Assignment *uuid.UUID               // likewise
	Window     roomsensor.Window        // what they came to, so that it does not slide

	// The last item of the page before: At is its bucket_at or started_at, ID
	// its device_id or assignment_id.
	At time.Time
	ID uuid.UUID
}

// Sealer makes and reads cursors with a secret that all replicas share.
type Sealer struct {
	aead cipher.AEAD
}

// NewSealer takes a secret of SecretBytes.
func NewSealer(secret []byte) (*Sealer, error) {
	if len(secret) != SecretBytes {
		return nil, fmt.Errorf("the cursor secret has %d bytes, not %d", len(secret), SecretBytes)
	}
	block, err := aes.NewCipher(secret)
	if err != nil {
		return nil, fmt.Errorf("making the cursor cipher: %w", err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, fmt.Errorf("making the cursor cipher: %w", err)
	}
	return &Sealer{aead}, nil
}

// Strict decoding, so that one cursor has one spelling.
var encoding = base64.RawURLEncoding.Strict()

// Seal makes the text of a cursor.
func (s *Sealer) Seal(w *Walk) string {
	head := []byte{version}
	// The nonce is random, and of the cipher's own making.
	return encoding.EncodeToString(s.aead.Seal(head, nil, w.marshal(), head)) //nolint:gosec // As said.
}

// Open reads the text of a cursor back; the error is ErrCorrupted.
func (s *Sealer) Open(text string) (*Walk, error) {
	if strings.ContainsAny(text, "\r\n") {
		return nil, ErrCorrupted // The decoder would pass over them.
	}
	sealed, err := encoding.DecodeString(text)
	if err != nil || len(sealed) == 0 || sealed[0] != version {
		return nil, ErrCorrupted
	}
	plain, err := s.aead.Open(nil, nil, sealed[1:], sealed[:1])
	if err != nil {
		return nil, ErrCorrupted
	}
	return unmarshal(plain)
}

// Check holds a cursor to the request it came with, in the order of decision
// 12: endpoint, age, key, device.
func (w *Walk) Check(endpoint Endpoint, keyID string, device uuid.UUID, now time.Time) error {
	switch {
	case w.Endpoint != endpoint, now.Sub(w.IssuedAt) > Lifetime:
		return roomsensor.CodeCursorInvalid.New()
	case w.KeyID != keyID:
		return roomsensor.CodeCursorTeamMismatch.New()
	case w.Device != device:
		return roomsensor.CodeCursorDeviceMismatch.New()
	}
	return nil
}
