// Package mergepatch parses the bodies of PATCH /devices/{device_id}, which are JSON merge patches (RFC 7396).
package mergepatch

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"roomsensor/internal/httpedge"
	"roomsensor/internal/roomsensor"
)

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

// Parse reads the body of a PATCH (decisions 19 to 21). If the body is a JSON object, the reserved field is reported
// before any other error.
func Parse(body []byte) (roomsensor.DevicePatch, error) {
	names, err := fieldNames(body)
	if err != nil {
		return roomsensor.DevicePatch{}, err
	}
	if slices.Contains(names, reservedField) {
		return roomsensor.DevicePatch{}, roomsensor.CodeNotImplemented.New()
	}
	p := parser{decoder: jsontext.NewDecoder(bytes.NewReader(body), jsontext.AllowDuplicateNames(true))}
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

// parser reads the fields one after the other. fieldNames has checked the syntax, so a token that cannot be read
// is not UTF-8.
type parser struct {
	decoder *jsontext.Decoder
	patch   roomsensor.DevicePatch
}

// object reads an object and calls member with each name; member reads the value. A duplicate name is an error. prefix
// precedes the names in error messages.
func (p *parser) object(prefix string, member func(name string) error) error {
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
func (p *parser) skip() error {
	if _, err := p.decoder.ReadToken(); err != nil {
		return errSyntax
	}
	return nil
}

func (p *parser) field(name string) error {
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

func (p *parser) displayName() error {
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
func (p *parser) metadata() error {
	switch p.decoder.PeekKind() {
	case 'n':
		p.patch.Metadata.Clear = true
		return p.skip()
	case '{':
		p.patch.Metadata.Values = map[string]*string{}
		return p.object(httpedge.MetadataPrefix, p.tag)
	default:
		return roomsensor.Invalid(metadataField, "metadata must be an object of strings, or null to clear all tags.")
	}
}

// maxShownTag has room for metadata. and a valid key.
const maxShownTag = 80

func (p *parser) tag(key string) error {
	name := httpedge.MetadataPrefix + key
	param, shown := roomsensor.Masked(name), httpedge.Shown(name, maxShownTag)
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
func (p *parser) text(param, otherwise string) (*string, error) {
	switch p.decoder.PeekKind() {
	case 'n':
		return nil, p.skip()
	case '"':
		token, err := p.decoder.ReadToken()
		if err != nil {
			return nil, roomsensor.Invalid(param, param+" must be UTF-8.")
		}
		return new(token.String()), nil
	default:
		return nil, roomsensor.Invalid(param, otherwise)
	}
}
