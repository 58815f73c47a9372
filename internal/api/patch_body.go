package api

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"roomsensor/internal/roomsensor"
)

// The fields of a PATCH body (spec 4).
const (
	displayNameField = "display_name"
	metadataField    = "metadata"
	reservedField    = "assignment"
)

var (
	errNotObject = roomsensor.Invalid("", "The body must be one JSON object with display_name, metadata or both.")
	errSyntax    = roomsensor.Invalid("", "The body is not valid JSON. Check its syntax and that it is UTF-8.")
)

// parsePatch reads a PATCH body (decisions 19 to 21). The reserved field comes
// before every other fault of a body that is a JSON object.
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
		return roomsensor.DevicePatch{}, errNotObject // Something follows the object.
	}
	if len(names) == 0 {
		return roomsensor.DevicePatch{}, errNotObject
	}
	return p.patch, nil
}

// fieldNames lists the fields of a body that is syntactically a JSON object,
// whatever else is wrong with it.
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

// patchParser reads the fields one by one. The syntax is known to be good, so
// that a token that cannot be read is one that is not UTF-8.
type patchParser struct {
	decoder *jsontext.Decoder
	patch   roomsensor.DevicePatch
}

// object reads an object and hands each name to member, whose value is next.
// A name that stands twice is refused; prefix leads to it.
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
			shown := masked(prefix + name)
			return roomsensor.Invalid(shown, shown+" stands twice in the body. Send it once.")
		}
		seen[name] = true
		if err := member(name); err != nil {
			return err
		}
	}
	return p.skip()
}

// skip reads a token that says nothing beyond its kind.
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
	shown := masked(name)
	return roomsensor.Invalid(shown, fmt.Sprintf(
		"The body has the unknown field %s. Only display_name and metadata can be changed.", shown))
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

func (p *patchParser) tag(key string) error {
	param := masked(metadataPrefix + key)
	if err := roomsensor.CheckMetadataKey(key); err != nil {
		return roomsensor.Invalid(param, fmt.Sprintf("Every tag of metadata %v.", err))
	}
	value, err := p.text(param, param+" must be a string, or null to remove the tag.")
	if err != nil {
		return err
	}
	if value != nil {
		if err := roomsensor.CheckMetadataValue(*value); err != nil {
			return roomsensor.Invalid(param, fmt.Sprintf("%s %v.", param, err))
		}
	}
	p.patch.Metadata.Values[key] = value
	return nil
}

// text reads a string or null; any other value is refused with a sentence.
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
