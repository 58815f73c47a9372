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

// Lifetime is the time for which a cursor is valid after it was issued (decision 11). Those of the change feed live
// longer (A5.6).
const Lifetime = 24 * time.Hour

// SecretBytes is the length of the secret: an AES-256 key.
const SecretBytes = 32

// version is the first byte of every cursor. A change of the encoding needs a new number; cursors with the old one are
// then cursor_invalid.
const version = 1

// ErrCorrupted reports a text that is not a cursor of this service.
var ErrCorrupted = errors.New("the cursor is corrupted")

// Endpoint identifies the list that a cursor belongs to.
type Endpoint uint8

// The lists of spec 4, that of the receiver, and those of the additions.
const (
	Devices Endpoint = iota + 1
	CurrentDevices
	Assignments
	Readings
	Rejects // of the receiver (A8.2)
	Coverage
	Gaps
	Changes // the change feed (A5)
	Aggregates
	TeamAssignments
	Nights
)

// State is the content of a cursor: what the first page fixed, and where the last page ended.
type State struct {
	Endpoint Endpoint
	KeyID    string
	Device   uuid.UUID // uuid.Nil if the list is not of one device
	IssuedAt time.Time // to the microsecond
	Limit    int

	Filters    map[string]string        // the tags of a list of devices, or parameters of a list of rejects by name
	Request    roomsensor.WindowRequest // the time parameters of the first page
	Assignment *uuid.UUID               // the assignment_id of the first page
	Now        time.Time                // of the first page, if the list depends on it (A0.3), to the microsecond
	IDs        []uuid.UUID              // the devices of the first page, nil without such a parameter
	Window     roomsensor.Window        // resolved from both once, so that it does not move from page to page

	// The last item of the previous page: At is its bucket_at or started_at, ID its device_id or assignment_id. In the
	// change feed, Window is the round, and At is zero at its start. In the list of nights, Window has the dates, At is
	// the date of the item, and Sent are the assignments that were sent of this night, whose order late readings change.
	At   time.Time
	ID   uuid.UUID
	Sent []uint64 // both halves of each id, XORed: 5,000 whole ids would be too long for the header of a request
}

// Continued reports whether a page continues another one, that is, whether its state comes from a cursor.
func (s *State) Continued() bool { return !s.IssuedAt.IsZero() }

// Sealer encrypts and decrypts cursors with a secret that all replicas share.
type Sealer struct {
	aead cipher.AEAD
}

// NewSealer makes a Sealer. The secret must have SecretBytes bytes.
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

// encoding is strict, so that each cursor has exactly one text.
var encoding = base64.RawURLEncoding.Strict()

// Seal returns the text of a cursor.
func (s *Sealer) Seal(state *State) string {
	head := []byte{version}
	sealed := s.aead.Seal(head, nil, state.marshal(), head) //nolint:gosec // The cipher makes the nonce.
	return encoding.EncodeToString(sealed)
}

// Open decrypts the text of a cursor. Its error is ErrCorrupted.
func (s *Sealer) Open(text string) (*State, error) {
	if strings.ContainsAny(text, "\r\n") {
		return nil, ErrCorrupted // The decoder ignores them.
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

// Check compares a cursor with the request that sent it, in the order of decision 12: endpoint, age, key, device.
func (s *State) Check(endpoint Endpoint, keyID string, device uuid.UUID, now time.Time) error {
	switch {
	case s.Endpoint != endpoint:
		return roomsensor.CodeCursorInvalid.New()
	case endpoint == Changes:
		if now.Sub(s.IssuedAt) > roomsensor.FeedReach || now.Sub(s.Window.From) > roomsensor.FeedKeep {
			return roomsensor.NewError(roomsensor.CodeCursorInvalid, "cursor", "The cursor has expired: it is older than 30 "+
				"days. To resynchronize, note the time, export the readings with GET /readings.csv, and then request "+
				"/readings/changes without a cursor and with that time as since.")
		}
	case now.Sub(s.IssuedAt) > Lifetime:
		return roomsensor.CodeCursorInvalid.New()
	}
	switch {
	case s.KeyID != keyID:
		return roomsensor.CodeCursorTeamMismatch.New()
	case s.Device != device:
		return roomsensor.CodeCursorDeviceMismatch.New()
	}
	return nil
}
