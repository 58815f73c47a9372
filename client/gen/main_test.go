package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestUse(t *testing.T) {
	t.Parallel()
	text := schema{"type": "string", "minLength": 1.0, "description": "A text."}
	g := &generator{used: schema{}, all: schema{
		"Text":      text,
		"ID":        schema{"type": "string", "format": "uuid", "description": "A UUID."},
		"ErrorCode": schema{"type": "string", "enum": []any{"not_found"}},
		"Inner":     schema{"type": "object", "properties": schema{"n": schema{"type": "number", "format": "float"}}},
		"Outer": schema{"type": "object", "required": []any{"inner", "id"}, "properties": schema{
			"id":    schema{"$ref": "#/components/schemas/ID"},
			"inner": schema{"nullable": true, "allOf": []any{schema{"$ref": "#/components/schemas/NullableInner"}}},
			"tags":  schema{"type": "object", "additionalProperties": schema{"$ref": "#/components/schemas/Text"}},
			"list":  schema{"type": "array", "items": schema{"type": "number"}},
		}},
		"NullableInner": schema{"type": "object", "nullable": true, "properties": schema{}},
		"Unnamed":       schema{"type": "object", "properties": schema{"kind": schema{"type": "string", "enum": []any{"a"}}}},
	}}
	for _, name := range []string{"Outer", "ErrorCode"} {
		require.NoError(t, g.use(name))
	}
	require.Equal(t, schema{
		"Inner": schema{"type": "object", "properties": schema{
			"n": schema{"type": "number", "format": "double", "x-order": -1},
		}},
		"ErrorCode": schema{"type": "string", "enum": []any{"not_found"}, "x-enum-varnames": []string{"Code_not_found"}},
		"Outer": schema{"type": "object", "required": []any{"inner", "id"}, "properties": schema{
			"id": schema{
				"type": "string", "x-order": 1, "x-go-type": "uuid.UUID",
				"x-go-type-import": map[string]string{"path": "github.com/google/uuid"},
			},
			"inner": schema{"nullable": true, "x-order": 0, "allOf": []any{schema{"$ref": "#/components/schemas/Inner"}}},
			"tags": schema{"type": "object", "x-order": -1, "additionalProperties": schema{
				"type": "string", "description": "A text.",
			}},
			"list": schema{"type": "array", "x-order": -1, "items": schema{"type": "number", "format": "double"}},
		}},
	}, g.used)
	require.ErrorContains(t, g.use("Unknown"), "no schema Unknown")
	require.ErrorContains(t, g.use("Unnamed"), "add the name of the type of Unnamed.kind")
}

func TestPrepare(t *testing.T) {
	t.Parallel()
	text, err := prepare()
	require.NoError(t, err)
	for _, name := range roots {
		require.Contains(t, string(text), `"`+name+`":{`)
	}
}
