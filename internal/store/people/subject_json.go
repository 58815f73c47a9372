package people

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// eraseActiveAssignment replaces the label and the external_ref of the assignment in a stored response of a device.
func eraseActiveAssignment(response []byte, name string) ([]byte, error) {
	return rewriteStrings(response, func(pointer, text string) *string {
		switch pointer {
		case "/active_assignment/label":
			return &name
		case "/active_assignment/external_ref":
			return nil
		}
		return &text
	})
}

// rewriteStrings calls rewrite for each string of a JSON value, with its pointer (RFC 6901), and replaces it by the
// result; nil becomes null. The pointer of a name is empty, and its result must not be nil. All else stays as it is,
// but for space between tokens.
func rewriteStrings(text []byte, rewrite func(pointer, text string) *string) ([]byte, error) {
	var out bytes.Buffer
	options := []jsontext.Options{jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)}
	from, to := jsontext.NewDecoder(bytes.NewReader(text), options...), jsontext.NewEncoder(&out, options...)
	for {
		token, err := from.ReadToken()
		if errors.Is(err, io.EOF) {
			return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading stored JSON: %w", err)
		}
		kind, length := from.StackIndex(from.StackDepth())
		isName := kind == '{' && length%2 == 1
		if token.Kind() == '"' {
			text, pointer := token.String(), ""
			if !isName {
				pointer = string(from.StackPointer())
			}
			switch result := rewrite(pointer, text); {
			case result == nil:
				token = jsontext.Null
			case *result != text:
				token = jsontext.String(*result)
			}
		}
		if err := to.WriteToken(token); err != nil {
			return nil, fmt.Errorf("writing stored JSON: %w", err)
		}
	}
}
