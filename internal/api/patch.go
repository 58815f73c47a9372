package api

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

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
	patch, err := parsePatch(body)
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
		return appendDevice(nil, &d, s.now()), nil
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

// The fields of a PATCH body (spec 4). The field assignment is reserved.
const (
	displayNameField = "display_name"
	metadataField    = "metadata"
	reservedField    = "assignment"
)

var (
	errNotObject = roomsensor.Invalid("", "The body must be one JSON object with display_name, metadata or both.")
	errSyntax    = roomsensor.Invalid("", "The body is not valid JSON. Check its syntax and that it is UTF-8.")
)

// parsePatch reads a PATCH body (decisions 19 to 21). If the body is a JSON object, the reserved field is reported
// before any other error.
func parsePatch(body []byte) (roomsensor.DevicePatch, error) {
	names, err := fieldNames(body)
	if err != nil {
		return roomsensor.DevicePatch{}, err
	}
	if slices.Contains(names, reservedField) {
		return roomsensor.DevicePatch{}, roomsensor.CodeNotImplemented.New()
	}
	p := patchParser{decoder: jsontext.NewDecoder(bytes.NewReader(body), jsontext.AllowDuplicateNames(true))}
	if err := p.object("", p.field); err != nil {
		return roomsensor.DevicePatch{}, err
	}
	if _, err := p.decoder.ReadToken(); !errors.Is(err, io.EOF) {
		return roomsensor.DevicePatch{}, errNotObject // There is more after the object.
	}
	if len(names) == 0 {
		return roomsensor.DevicePatch{}, errNotObject
	}
	return p.patch, nil
}

// fieldNames returns the fields of a body that is syntactically a JSON object, even if it has other errors.
func fieldNames(body []byte) ([]string, error) {
	d := jsontext.NewDecoder(bytes.NewReader(body),
		jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if opening, err := d.ReadToken(); err != nil {
		return nil, errSyntax
	} else if opening.Kind() != '{' {
		return nil, errNotObject
	}
	var names []string
	for d.PeekKind() != '}' {
		name, err := d.ReadToken()
		if err != nil {
			return nil, errSyntax
		}
		names = append(names, name.String())
		if err := d.SkipValue(); err != nil {
			return nil, errSyntax
		}
	}
	if _, err := d.ReadToken(); err != nil {
		return nil, errSyntax
	}
	return names, nil
}

// patchParser reads the fields one after the other. fieldNames has checked the syntax, so a token that cannot be read
// is not UTF-8.
type patchParser struct {
	decoder *jsontext.Decoder
	patch   roomsensor.DevicePatch
}

// object reads an object and calls member with each name; member reads the value. A duplicate name is an error. prefix
// precedes the names in error messages.
func (p *patchParser) object(prefix string, member func(name string) error) error {
	if err := p.skip(); err != nil {
		return err
	}
	seen := map[string]bool{}
	for p.decoder.PeekKind() != '}' {
		token, err := p.decoder.ReadToken()
		if err != nil {
			return errSyntax
		}
		name := token.String()
		if seen[name] {
			return roomsensor.Invalid(roomsensor.Masked(prefix+name),
				fmt.Sprintf("The body has the field %s twice. Send it once.", httpedge.Quoted(prefix+name)))
		}
		seen[name] = true
		if err := member(name); err != nil {
			return err
		}
	}
	return p.skip()
}

// skip reads a token that carries no value.
func (p *patchParser) skip() error {
	if _, err := p.decoder.ReadToken(); err != nil {
		return errSyntax
	}
	return nil
}

func (p *patchParser) field(name string) error {
	switch name {
	case displayNameField:
		return p.displayName()
	case metadataField:
		return p.metadata()
	}
	return roomsensor.Invalid(roomsensor.Masked(name), fmt.Sprintf(
		"The body has the unknown field %s. %sOnly display_name and metadata can be changed.",
		httpedge.Quoted(name), httpedge.DidYouMean(httpedge.Closest(name, []string{displayNameField, metadataField}))))
}

func (p *patchParser) displayName() error {
	name, err := p.text(displayNameField, "display_name must be a string or null.")
	if err != nil {
		return err
	}
	if name != nil {
		if err := checkDisplayName(*name); err != nil {
			return err
		}
	}
	p.patch.SetDisplayName, p.patch.DisplayName = true, name
	return nil
}

func checkDisplayName(name string) error {
	if name == "" {
		return roomsensor.Invalid(displayNameField, "display_name must not be empty. Send null to clear the name.")
	}
	if err := roomsensor.CheckName(name); err != nil {
		return roomsensor.Invalid(displayNameField, fmt.Sprintf("display_name %v.", err))
	}
	return nil
}

// metadata reads a merge patch of the tags (decision 21).
func (p *patchParser) metadata() error {
	switch p.decoder.PeekKind() {
	case 'n':
		p.patch.Metadata.Clear = true
		return p.skip()
	case '{':
		p.patch.Metadata.Values = map[string]*string{}
		return p.object(metadataPrefix, p.tag)
	default:
		return roomsensor.Invalid(metadataField, "metadata must be an object of strings, or null to clear all tags.")
	}
}

// maxShownTag has room for metadata. and a valid key.
const maxShownTag = 80

func (p *patchParser) tag(key string) error {
	param, shown := roomsensor.Masked(metadataPrefix+key), httpedge.Shown(metadataPrefix+key, maxShownTag)
	if err := roomsensor.CheckMetadataKey(key); err != nil {
		return roomsensor.Invalid(param, fmt.Sprintf("Each tag in metadata %v.", err))
	}
	value, err := p.text(param, shown+" must be a string, or null to remove the tag.")
	if err != nil {
		return err
	}
	if value != nil {
		if err := roomsensor.CheckMetadataValue(*value); err != nil {
			return roomsensor.Invalid(param, fmt.Sprintf("%s %v.", shown, err))
		}
	}
	p.patch.Metadata.Values[key] = value
	return nil
}

// text reads a string or null. Any other value is an error with the message otherwise.
func (p *patchParser) text(param, otherwise string) (*string, error) {
	switch p.decoder.PeekKind() {
	case 'n':
		return nil, p.skip()
	case '"':
		token, err := p.decoder.ReadToken()
		if err != nil {
			return nil, roomsensor.Invalid(param, param+" must be UTF-8.")
		}
		text := token.String()
		return &text, nil
	default:
		return nil, roomsensor.Invalid(param, otherwise)
	}
}
