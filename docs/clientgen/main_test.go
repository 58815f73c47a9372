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

func TestUseErrors(t *testing.T) {
	t.Parallel()
	g := &generator{used: schema{}, all: schema{
		"Unnamed": schema{"type": "object", "properties": schema{"kind": schema{"type": "string", "enum": []any{"a"}}}},
	}}
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
