package store_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// servedNames are the names that can be reached from the methods of the API's interfaces: whatever is called in their
// bodies, and in those of all functions of such a name, be they meant or not.
func servedNames(t *testing.T) map[string]bool {
	t.Helper()
	mentions := mentionedIn(t)
	served := map[string]bool{}
	next := interfaceMethods(t)
	for len(next) > 0 {
		name := next[0]
		next = next[1:]
		if !served[name] {
			served[name] = true
			next = append(next, slices.Collect(maps.Keys(mentions[name]))...)
		}
	}
	return served
}

// mentionedIn is, by the name of a function of the store, or of the process that adapts it, what its body names.
func mentionedIn(t *testing.T) map[string]map[string]bool {
	t.Helper()
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	files = slices.DeleteFunc(files, func(name string) bool { return strings.HasSuffix(name, "_test.go") })
	all := map[string]map[string]bool{}
	for _, name := range append(files, "../app/api.go") {
		for _, d := range parse(t, name).Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			if all[f.Name.Name] == nil {
				all[f.Name.Name] = map[string]bool{}
			}
			ast.Inspect(f, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok {
					all[f.Name.Name][id.Name] = true
				}
				return true
			})
		}
	}
	return all
}

// interfaceMethods are what the API asks of the store.
func interfaceMethods(t *testing.T) (names []string) {
	t.Helper()
	ast.Inspect(parse(t, "../api/backend.go"), func(n ast.Node) bool {
		if i, ok := n.(*ast.InterfaceType); ok {
			for _, method := range i.Methods.List {
				for _, name := range method.Names {
					names = append(names, name.Name)
				}
			}
		}
		return true
	})
	require.Greater(t, len(names), 10)
	return names
}

func parse(t *testing.T, path string) *ast.File {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	require.NoError(t, err)
	return file
}
