package openapitest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// compiled are the schemas of the responses and headers of a document. They are compiled once, because that takes much
// longer than to check a response.
type compiled struct {
	compiler *jsonschema.Compiler
	schemas  map[*openapi3.Schema]*jsonschema.Schema
}

// compile compiles the schemas of every response of a document. OpenAPI 3.1 uses JSON Schema 2020-12, so the document
// itself is the resource in which references are found.
func compile(spec *openapi3.T) (map[*openapi3.Schema]*jsonschema.Schema, error) {
	text, err := json.Marshal(spec)
	if err != nil {
		return nil, fmt.Errorf("encoding the document: %w", err)
	}
	resource, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("decoding the document: %w", err)
	}
	c := &compiled{jsonschema.NewCompiler(), map[*openapi3.Schema]*jsonschema.Schema{}}
	c.compiler.DefaultDraft(jsonschema.Draft2020)
	c.compiler.AssertFormat()
	if err := c.compiler.AddResource("openapi.json", resource); err != nil {
		return nil, fmt.Errorf("adding the document: %w", err)
	}
	for name, response := range spec.Components.Responses {
		if err := c.addResponse("#/components/responses/"+name, response); err != nil {
			return nil, err
		}
	}
	for path, item := range spec.Paths.Map() {
		for method, operation := range item.Operations() {
			for status, response := range operation.Responses.Map() {
				at := "#/paths/" + escape(path) + "/" + strings.ToLower(method) + "/responses/" + status
				if err := c.addResponse(at, response); err != nil {
					return nil, err
				}
			}
		}
	}
	return c.schemas, nil
}

// escape makes a segment of a JSON pointer, within a URL, from a key.
func escape(key string) string {
	return strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D").Replace(key)
}

// addResponse compiles the schemas of the response at a JSON pointer.
func (c *compiled) addResponse(at string, response *openapi3.ResponseRef) error {
	if response.Ref != "" {
		return nil // It is among the components.
	}
	for name, header := range response.Value.Headers {
		place := at + "/headers/" + name
		if header.Ref != "" {
			place = header.Ref
		}
		if err := c.add(place+"/schema", header.Value.Schema); err != nil {
			return err
		}
	}
	for mediaType, content := range response.Value.Content {
		if err := c.add(at+"/content/"+escape(mediaType)+"/schema", content.Schema); err != nil {
			return err
		}
	}
	return nil
}

func (c *compiled) add(at string, schema *openapi3.SchemaRef) (err error) {
	if schema == nil || c.schemas[schema.Value] != nil {
		return nil
	}
	c.schemas[schema.Value], err = c.compiler.Compile("openapi.json" + at)
	if err != nil {
		return fmt.Errorf("compiling the schema at %s: %w", at, err)
	}
	return nil
}

// validateHeaders returns an error if a header that the document requires is missing, or has a value that its schema
// does not allow.
func (d *Document) validateHeaders(header http.Header, response *openapi3.Response) error {
	for name, described := range response.Headers {
		values := header.Values(name)
		if len(values) == 0 {
			if described.Value.Required {
				return fmt.Errorf("the header %s is missing", name)
			}
			continue
		}
		text := strings.Join(values, ", ")
		var value any = text
		if n, err := strconv.Atoi(text); err == nil && described.Value.Schema.Value.Type.Is(openapi3.TypeInteger) {
			value = n
		}
		if err := d.schemas[described.Value.Schema.Value].Validate(value); err != nil {
			return fmt.Errorf("the header %s is %q: %w", name, text, err)
		}
	}
	return nil
}

// validateBody returns an error if the response must not have the content type, or its schema does not allow the body.
func (d *Document) validateBody(contentType string, body []byte, response *openapi3.Response) error {
	if len(response.Content) == 0 {
		return nil
	}
	content := response.Content.Get(contentType)
	if content == nil {
		return fmt.Errorf("the document does not have the Content-Type %q", contentType)
	}
	if content.Schema == nil {
		return nil
	}
	var value any = string(body)
	if strings.HasPrefix(contentType, "application/json") {
		var err error
		if value, err = jsonschema.UnmarshalJSON(bytes.NewReader(body)); err != nil {
			return fmt.Errorf("reading JSON: %w", err)
		}
	}
	return d.schemas[content.Schema.Value].Validate(value) //nolint:wrapcheck // The error names the value.
}
