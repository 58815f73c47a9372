package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"os/exec"
	"strings"
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
			"inner": schema{"$ref": "#/components/schemas/InnerOrNull"},
			"tags":  schema{"type": "object", "additionalProperties": schema{"$ref": "#/components/schemas/Text"}},
			"list":  schema{"type": "array", "items": schema{"type": "number"}},
		}},
		"InnerOrNull": schema{"type": "object", "nullable": true, "description": "An inner.", "properties": schema{}},
		"Unnamed":     schema{"type": "object", "properties": schema{"kind": schema{"type": "string", "enum": []any{"a"}}}},
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
			"inner": schema{
				"nullable": true, "description": "An inner.", "x-order": 0,
				"allOf": []any{schema{"$ref": "#/components/schemas/Inner"}},
			},
			"tags": schema{"type": "object", "x-order": -1, "additionalProperties": schema{
				"type": "string", "description": "A text.",
			}},
			"list": schema{"type": "array", "x-order": -1, "items": schema{"type": "number", "format": "double"}},
		}},
	}, g.used)
	require.ErrorContains(t, g.use("Unknown"), "no schema Unknown")
	require.ErrorContains(t, g.use("Unnamed"), "add the name of the type of Unnamed.kind")
}

// TestDocuments checks that oapi-codegen makes a client of each document as it is. The check of the types ends at the
// imports, because the product does not have the package that generated clients import.
func TestDocuments(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"openapi", "receiver"} {
		var stderr strings.Builder
		command := exec.CommandContext(t.Context(), "go", "tool", "-modfile=../../tools/go.mod", "oapi-codegen",
			"-generate", "types,client", "-package", name, "../../docs/"+name+".yaml")
		command.Stderr = &stderr
		command.Env = append(os.Environ(), "CGO_ENABLED=0") // The build cache is then the same as elsewhere.
		code, err := command.Output()
		require.NoError(t, err, stderr.String())
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, name+".go", code, 0)
		require.NoError(t, err)
		config := types.Config{Error: func(err error) {
			if !strings.Contains(err.Error(), "could not import") {
				t.Error(err)
			}
		}}
		_, _ = config.Check(name, files, []*ast.File{file}, nil) // It reports all errors to the function above.
	}
}
