package docs

import (
	"encoding/json"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/require"
)

func TestDowngrade(t *testing.T) {
	t.Parallel()
	const components = `
		"Text": {"type": "string", "pattern": "x"},
		"Maybe": {"type": ["string", "null"]},
		"Thing": {"type": "object", "required": ["a"], "properties": {"a": {"const": 1, "type": "integer"}}}`
	for name, tc := range map[string]struct{ old, converted string }{
		"null among the types":  {`{"type": ["number", "null"]}`, `{"type": "number", "nullable": true}`},
		"null among the values": {`{"type": ["string", "null"], "enum": ["a"]}`, `{"type": "string", "nullable": true, "enum": ["a", null]}`},
		"const":                 {`{"type": "integer", "const": 600}`, `{"type": "integer", "enum": [600]}`},
		"examples":              {`{"type": "string", "examples": ["a", "b"]}`, `{"type": "string", "example": "a"}`},
		"exclusive limits": {
			`{"type": "number", "exclusiveMinimum": 1, "exclusiveMaximum": 5}`,
			`{"type": "number", "minimum": 1, "exclusiveMinimum": true, "maximum": 5, "exclusiveMaximum": true}`,
		},
		"a value or null": {
			`{"anyOf": [{"$ref": "#/components/schemas/Text"}, {"type": "null"}], "description": "d"}`,
			`{"type": "string", "pattern": "x", "nullable": true, "description": "d"}`,
		},
		"an object or null": {
			`{"anyOf": [{"$ref": "#/components/schemas/Thing"}, {"type": "null"}]}`,
			`{"type": "object", "nullable": true, "required": ["a"], "properties": {"a": {"type": "integer", "enum": [1]}}}`,
		},
		"a field that is an object or null": {
			`{"type": "object", "properties": {"t": {"anyOf": [{"$ref": "#/components/schemas/Thing"}, {"type": "null"}]}}}`,
			`{"type": "object", "properties": {"t": {"nullable": true, "allOf": [{"$ref": "#/components/schemas/NullableThing"}]}}}`,
		},
		"a $ref alone": {`{"$ref": "#/components/schemas/Text"}`, `{"$ref": "#/components/schemas/Text"}`},
		"keywords beside a $ref": {
			`{"$ref": "#/components/schemas/Text", "description": "d", "examples": ["x"]}`,
			`{"allOf": [{"$ref": "#/components/schemas/Text"}], "description": "d", "example": "x"}`,
		},
		"keywords beside a $ref to a nullable schema": {
			`{"$ref": "#/components/schemas/Maybe", "description": "d"}`,
			`{"allOf": [{"$ref": "#/components/schemas/Maybe"}], "description": "d", "nullable": true}`,
		},
		"parts that narrow": {
			`{"allOf": [{"$ref": "#/components/schemas/Thing"}, {"properties": {"a": {"enum": [1]}}}]}`,
			`{"$ref": "#/components/schemas/Thing"}`,
		},
		"parts that add": {
			`{"allOf": [{"$ref": "#/components/schemas/Thing"}, {"type": "object", "properties": {"b": {"type": "null"}}}], "description": "d"}`,
			``,
		},
		"conditions": {
			`{"type": "object", "propertyNames": {"pattern": "x"}, "if": {}, "then": {}, "else": {}, "anyOf": [{"required": ["a"]}]}`,
			`{"type": "object"}`,
		},
		"lists and maps": {
			`{"type": "array", "items": {"type": "object", "additionalProperties": {"type": ["string", "null"]}}}`,
			`{"type": "array", "items": {"type": "object", "additionalProperties": {"type": "string", "nullable": true}}}`,
		},
		"several types":                 {`{"type": ["string", "number"]}`, ``},
		"null alone":                    {`{"type": "null"}`, ``},
		"other alternatives":            {`{"anyOf": [{"type": "string"}, {"type": "number"}]}`, ``},
		"unknown keywords":              {`{"unevaluatedProperties": false}`, ``},
		"nothing but parts that narrow": {`{"allOf": [{"properties": {}}]}`, ``},
		"true":                          {`true`, ``},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, err := downgrade([]byte(`{"paths": {}, "components": {"schemas": {"It": `+tc.old+`,`+components+`}}}`), false)
			if tc.converted == "" {
				require.ErrorContains(t, err, "converting a document to OpenAPI 3.0: #/components/schemas/It")
				return
			}
			require.NoError(t, err)
			var document struct {
				OpenAPI    string `json:"openapi"`
				Components struct {
					Schemas map[string]json.RawMessage `json:"schemas"`
				} `json:"components"`
			}
			require.NoError(t, json.Unmarshal(text, &document))
			require.Equal(t, "3.0.3", document.OpenAPI)
			require.JSONEq(t, tc.converted, string(document.Components.Schemas["It"]))
		})
	}
	t.Run("parts of a document that 3.0 does not have", func(t *testing.T) {
		t.Parallel()
		_, err := downgrade([]byte(`{"paths": {}, "webhooks": {}}`), false)
		require.ErrorContains(t, err, "#/webhooks does not exist")
		_, err = downgrade([]byte(`{`), false)
		require.Error(t, err)
	})
}

// TestOpenAPI30 checks that the documents in 3.0 are valid, with their examples, and have all operations.
func TestOpenAPI30(t *testing.T) {
	t.Parallel()
	all := map[string]map[string]bool{}
	for name, render := range map[string]func() ([]byte, error){
		"API": OpenAPI30, "API with HEAD": OpenAPI30WithHead,
		"receiver": func() ([]byte, error) { return render30(Receiver(), false) },
		"3.1":      func() ([]byte, error) { return OpenAPI(), nil },
	} {
		text, err := render()
		require.NoError(t, err, name)
		document, err := openapi3.NewLoader().LoadFromData(text)
		require.NoError(t, err, name)
		require.Equal(t, name == "3.1", document.IsOpenAPI31OrLater())
		require.NoError(t, document.Validate(t.Context(), openapi3.EnableExamplesValidation()), name)
		all[name] = map[string]bool{}
		for path, item := range document.Paths.Map() {
			for method := range item.Operations() {
				all[name][method+" "+path] = true
			}
		}
	}
	require.Equal(t, all["3.1"], all["API with HEAD"])
	for name := range all["3.1"] {
		require.Equal(t, name[:5] != "HEAD ", all["API"][name], name)
	}
	require.Len(t, all["receiver"], 2)
}
