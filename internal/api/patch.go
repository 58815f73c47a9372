package api

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"

	"roomsensor/internal/api/mergepatch"
	"roomsensor/internal/api/render"
	"roomsensor/internal/httpedge"
	"roomsensor/internal/roomsensor"
)

const (
	// maxPatchBytes is the limit of a PATCH body (decision 19).
	maxPatchBytes = 64 << 10
	// maxIdempotencyKey is the maximum length of an Idempotency-Key in characters (spec 8).
	maxIdempotencyKey = 255

	contentTypeHeader    = "Content-Type"
	idempotencyKeyHeader = "Idempotency-Key"
)

// patchDevice handles PATCH /devices/{device_id}. It checks in the order of decision 22: path id, headers and query
// parameters, body size, the reserved field assignment, body; the store checks the rest in the transaction of the
// change.
func (s *server) patchDevice(ctx context.Context, c *call) error {
	device, err := c.deviceID()
	if err != nil {
		return err
	}
	key, err := c.patchHeaders(device)
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
	patch, err := mergepatch.Parse(body)
	if err != nil {
		return err
	}
	if key != nil {
		key.BodySHA256 = sha256.Sum256(body)
	}
	response, replayed, err := s.changeDevice(ctx, c, device, patch, key)
	if err != nil {
		return orDeviceNotFound(err)
	}
	if replayed {
		c.setHeader("Idempotent-Replayed", "true")
	}
	c.setHeader(contentTypeHeader, httpedge.ContentType)
	return c.writeBody(http.StatusOK, response)
}

// changeDevice applies a patch and renders the response; with a key at most once, and otherwise it returns the response
// of the first time (decision 23).
func (s *server) changeDevice(
	ctx context.Context, c *call, device uuid.UUID, patch roomsensor.DevicePatch, key *roomsensor.IdempotencyKey,
) (response []byte, replayed bool, err error) {
	ctx = roomsensor.WithActor(ctx, roomsensor.Actor{Kind: roomsensor.ActorAPIKey, Name: c.key.ID})
	change := func(ctx context.Context, tx roomsensor.DeviceUpdater) ([]byte, error) {
		d, err := tx.UpdateDevice(ctx, c.key.TeamID, device, patch)
		if err != nil {
			return nil, err
		}
		return render.Device(nil, &d, s.now()), nil
	}
	if key != nil {
		return s.backend.Idempotently(ctx, *key, change)
	}
	response, err = change(ctx, s.backend)
	return response, false, err
}

// conditions are the headers with which a client would expect a PATCH to change nothing if another client was first
// (decision 50).
var conditions = [...]string{"If-Match", "If-Unmodified-Since"}

// patchHeaders checks the headers of a PATCH and returns its idempotency key, or nil without an Idempotency-Key.
func (c *call) patchHeaders(device uuid.UUID) (*roomsensor.IdempotencyKey, error) {
	h := c.Request().Header
	for _, name := range conditions {
		if len(h.Values(name)) > 0 {
			return nil, roomsensor.Invalid(name, "PATCH cannot be conditional. Leave out the header "+name+
				": tags are merged key by key, so that two clients that set different tags never overwrite each other.")
		}
	}
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
			"Idempotency-Key must have 1 to 255 characters, in valid UTF-8 without NUL, and must be sent once.")
	}
	return &roomsensor.IdempotencyKey{
		KeyID:  c.key.ID,
		TeamID: c.key.TeamID,
		Method: http.MethodPatch,
		Path:   version + "/devices/" + device.String(),
		Key:    keys[0],
	}, nil
}

func isIdempotencyKey(key string) bool {
	n := utf8.RuneCountInString(key)
	return n >= 1 && n <= maxIdempotencyKey && roomsensor.IsPlain(key)
}

// isJSON reports whether the only Content-Type is application/json, with no other charset than UTF-8.
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

// readBody reads the whole body, of at most maxPatchBytes.
func (c *call) readBody() ([]byte, error) {
	if c.Request().ContentLength > maxPatchBytes {
		return nil, roomsensor.CodeRequestTooLarge.New()
	}
	body, err := io.ReadAll(http.MaxBytesReader(c.Response(), c.Request().Body, maxPatchBytes))
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, roomsensor.CodeRequestTooLarge.New()
	}
	if err != nil {
		return nil, roomsensor.Invalid("", "The body did not arrive completely. Send the request again.")
	}
	return body, nil
}
