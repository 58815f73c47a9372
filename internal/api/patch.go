package api

import (
	"crypto/sha256"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"

	"roomsensor/internal/roomsensor"
)

const (
	// maxPatchBytes is the most a PATCH body may hold (decision 19).
	maxPatchBytes = 64 << 10
	// maxIdempotencyKey is its length in characters (spec 8).
	maxIdempotencyKey = 255

	contentTypeHeader    = "Content-Type"
	idempotencyKeyHeader = "Idempotency-Key"
)

// patchDevice changes a device (spec 4, PATCH), in the order of decision 22:
// path id, headers and parameters, size, assignment, body; what comes after is
// judged by the store, in the transaction of the change.
func (s *server) patchDevice(c *call) error {
	device, err := c.deviceID()
	if err != nil {
		return err
	}
	once, err := c.patchHeaders(device)
	if err != nil {
		return err
	}
	if _, err := c.query(); err != nil {
		return err
	}
	body, err := c.readBody()
	if err != nil {
		return err
	}
	patch, err := parsePatch(body)
	if err != nil {
		return err
	}
	if once != nil {
		once.BodySHA256 = sha256.Sum256(body)
	}
	answer, replayed, err := s.backend.UpdateDevice(c.ctx(), c.key.TeamID, device, patch, once, s.renderDevice)
	if err != nil {
		return orDeviceNotFound(err)
	}
	if replayed {
		c.setHeader("Idempotent-Replayed", "true")
	}
	c.setHeader(contentTypeHeader, jsonType)
	c.writeBody(http.StatusOK, answer)
	return nil
}

func (s *server) renderDevice(d roomsensor.Device) []byte { return appendDevice(nil, &d, s.now()) }

// patchHeaders checks the headers of a PATCH and makes of them what identifies
// the change; nil without an Idempotency-Key.
func (c *call) patchHeaders(device uuid.UUID) (*roomsensor.Once, error) {
	h := c.Request().Header
	if !isJSON(h.Values(contentTypeHeader)) {
		return nil, roomsensor.Invalid(contentTypeHeader, "Send the header Content-Type: application/json.")
	}
	if coding := h.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return nil, roomsensor.Invalid("Content-Encoding", "Send the body uncompressed.")
	}
	keys := h.Values(idempotencyKeyHeader)
	if len(keys) == 0 {
		return nil, nil //nolint:nilnil // The header is optional.
	}
	if len(keys) > 1 || !isIdempotencyKey(keys[0]) {
		return nil, roomsensor.Invalid(idempotencyKeyHeader,
			"Idempotency-Key must be sent once and have 1 to 255 characters.")
	}
	return &roomsensor.Once{
		KeyID:  c.key.ID,
		Method: http.MethodPatch,
		Path:   version + "/devices/" + device.String(),
		Key:    keys[0],
	}, nil
}

func isIdempotencyKey(key string) bool {
	n := utf8.RuneCountInString(key)
	return n >= 1 && n <= maxIdempotencyKey && roomsensor.IsPlain(key)
}

// isJSON takes application/json, in UTF-8 where a charset is named.
func isJSON(contentTypes []string) bool {
	if len(contentTypes) != 1 {
		return false
	}
	mediaType, parameters, err := mime.ParseMediaType(contentTypes[0])
	if err != nil || mediaType != "application/json" {
		return false
	}
	charset, named := parameters["charset"]
	return !named || strings.EqualFold(charset, "utf-8")
}

// readBody reads the whole body, up to 64 KiB.
func (c *call) readBody() ([]byte, error) {
	if c.Request().ContentLength > maxPatchBytes {
		return nil, roomsensor.CodeRequestTooLarge.New()
	}
	body, err := io.ReadAll(http.MaxBytesReader(c.Response(), c.Request().Body, maxPatchBytes))
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, roomsensor.CodeRequestTooLarge.New()
	}
	if err != nil {
		return nil, roomsensor.Invalid("", "The body did not arrive whole. Send the request again.")
	}
	return body, nil
}
