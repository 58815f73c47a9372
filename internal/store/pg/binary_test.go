package pg_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPositional checks in the generated code what Positional and the decoders of rows rely on: a statement has the
// arguments in the order of the fields of its parameters, and the columns in the order of the fields of its row.
func TestPositional(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../../db/*.go")
	require.NoError(t, err)
	fields, bodies := map[string][]string{}, map[string]*ast.FuncDecl{}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				bodies[n.Name.Name] = n
			case *ast.TypeSpec:
				if s, ok := n.Type.(*ast.StructType); ok {
					for _, f := range s.Fields.List {
						fields[n.Name.Name] = append(fields[n.Name.Name], f.Names[0].Name)
					}
				}
			}
			return true
		})
	}
	checked := 0
	for name, body := range bodies {
		params, row := selected(body, "arg"), selected(body, "i")
		if len(params) > 0 {
			require.Equal(t, fields[name+"Params"], params, name)
			checked++
		}
		if _, ok := fields[name+"Row"]; ok && !strings.Contains(strings.Join(row, ""), ".") {
			require.Equal(t, fields[name+"Row"], row, name)
			checked++
		}
	}
	require.Greater(t, checked, 100)
}

// selected returns the fields of a variable in the order in which a function selects them, such as a and b.c.
func selected(f *ast.FuncDecl, variable string) (names []string) {
	ast.Inspect(f.Body, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		path, x := s.Sel.Name, s.X
		if inner, ok := x.(*ast.SelectorExpr); ok { // A column of an embedded table.
			path, x = inner.Sel.Name+"."+path, inner.X
		}
		if id, ok := x.(*ast.Ident); ok && id.Name == variable {
			names = append(names, path)
		}
		return false
	})
	return names
}
