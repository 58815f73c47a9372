// Clientgen writes client/types.gen.go: the types of responses, from the OpenAPI document. go generate ./docs runs it.
// The module of the client does not contain it, because it would have to require what clientgen imports.
//
// oapi-codegen generates them, from a document that has only the schemas that the client uses. Clientgen prepares it:
//
//   - A schema of a single value, such as that of an id, has no type of its own: a field is a uuid.UUID.
//   - Every number is a float64, so that 21.4 stays 21.4.
//   - A field that is an object or null is a pointer to the type of the object.
//   - The values of an enumeration begin with the name of its type.
//
// The methods are written by hand: generated ones return the pages of a list one by one, have no retries, and hold
// every export in memory.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"roomsensor/docs"
)

// roots are the schemas of which the client uses the types, with those that they contain.
var roots = []string{
	"TeamAndKey", "Device", "CurrentDevice", "Assignment", "TeamAssignment", "Reading", "Aggregate", "DeviceCoverage",
	"Gap", "Night", "ReadingDeletion", "ErrorCode",
}

// names are those of the types of enumerations and objects that are not a schema of their own.
var names = map[string]string{
	"APIKey.scopes[]": "Scope", "Assignment.type": "AssignmentType", "Assignment.home_or_travel": "HomeOrTravel",
	"TeamAssignment.type": "AssignmentType", "TeamAssignment.home_or_travel": "HomeOrTravel",
	"DeviceCoverage.metrics": "MetricCounts", "Night.type": "AssignmentType", "Night.verdict": "Verdict",
}

// optional is the order of fields that a response may leave out.
var optional = []any{"co2_ppm", "temp_c", "humidity_pct", "lux", "spl_db"}

// prefixes begin the names of the values of an enumeration, if it is not the name of the type.
var prefixes = map[string]string{"ErrorCode": "Code"}

func main() { os.Exit(run(context.Background(), os.Stderr)) }

// run generates from the working directory, which is that of the package docs.
func run(ctx context.Context, stderr io.Writer) int {
	if err := generate(ctx, stderr); err != nil {
		_, _ = fmt.Fprintln(stderr, err) // There is no better place to report it.
		return 1
	}
	return 0
}

func generate(ctx context.Context, stderr io.Writer) error {
	text, err := prepare()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "roomsensor-client-")
	if err != nil {
		return fmt.Errorf("creating a directory: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	document := filepath.Join(dir, "openapi.json")
	if err := os.WriteFile(document, text, 0o600); err != nil {
		return fmt.Errorf("writing the document: %w", err)
	}
	//nolint:gosec // The arguments are constants, except for a file of this process.
	command := exec.CommandContext(ctx, "go", "tool", "-modfile=../tools/go.mod", "oapi-codegen",
		"-config", "clientgen/config.yaml", document)
	command.Stderr = stderr
	code, err := command.Output()
	if err != nil {
		return fmt.Errorf("running oapi-codegen: %w", err)
	}
	// Without the comment on the package, which doc.go has.
	_, code, _ = bytes.Cut(code, []byte("\n//\n"))
	code = bytes.Replace(code, []byte("\npackage "), []byte("\n\npackage "), 1)
	if err := os.WriteFile("../client/types.gen.go", code, 0o644); err != nil { //nolint:gosec // A file of the repository.
		return fmt.Errorf("writing the types: %w", err)
	}
	return nil
}

// schema is a schema of an OpenAPI document.
type schema = map[string]any

// generator collects the schemas of the client.
type generator struct {
	all  schema // of the document, by name
	used schema // prepared, by name
}

// prepare returns a document with the schemas of the client.
func prepare() ([]byte, error) {
	var document struct {
		Components struct {
			Schemas schema `yaml:"schemas"`
		} `yaml:"components"`
	}
	if err := yaml.Unmarshal(docs.OpenAPI(), &document); err != nil {
		return nil, fmt.Errorf("reading the document: %w", err)
	}
	g := &generator{all: document.Components.Schemas, used: schema{}}
	for _, name := range roots {
		if err := g.use(name); err != nil {
			return nil, err
		}
	}
	prepared, err := json.Marshal(map[string]any{
		"openapi": "3.0.3", "info": map[string]string{"title": "roomsensor API", "version": "1"}, "paths": struct{}{},
		"components": map[string]any{"schemas": g.used},
	})
	if err != nil {
		return nil, fmt.Errorf("encoding the document: %w", err)
	}
	return prepared, nil
}

// use adds a schema of the document, which gets a type.
func (g *generator) use(name string) error {
	if g.used[name] != nil {
		return nil
	}
	found, ok := g.all[name].(schema)
	if !ok {
		return fmt.Errorf("the document has no schema %s", name)
	}
	g.used[name] = found
	prepared, err := g.prepare(found, name)
	delete(prepared, "nullable") // A field is a pointer, not the type.
	g.used[name] = prepared
	return err
}

// prepare returns a schema, at a place such as Device.signal, as the generator needs it.
func (g *generator) prepare(s schema, at string) (schema, error) {
	if name, outer := referenced(s); name != "" {
		return g.reference(name, outer, at)
	}
	prepared := schema{"type": s["type"]}
	for _, key := range []string{"description", "nullable", "required"} {
		if s[key] != nil {
			prepared[key] = s[key]
		}
	}
	switch {
	case s["enum"] != nil:
		return g.enumeration(prepared, s, at)
	case s["type"] == "array":
		items, _ := s["items"].(schema)
		item, err := g.prepare(items, at+"[]")
		prepared["items"] = item
		return prepared, err
	case s["type"] == "object":
		return g.object(prepared, s, at)
	case s["type"] == "number":
		prepared["format"] = "double"
	case s["format"] == "uuid":
		prepared["x-go-type"] = "uuid.UUID"
		prepared["x-go-type-import"] = map[string]string{"path": "github.com/google/uuid"}
	case s["format"] == "date-time":
		prepared["format"] = "date-time"
	}
	return prepared, nil
}

// referenced returns the name of the schema to which s refers, and s without that.
func referenced(s schema) (name string, outer schema) {
	outer = maps.Clone(s)
	if members, ok := s["allOf"].([]any); ok && len(members) == 1 {
		s, _ = members[0].(schema)
		delete(outer, "allOf")
	}
	ref, _ := s["$ref"].(string)
	delete(outer, "$ref")
	return strings.TrimPrefix(ref, "#/components/schemas/"), outer
}

// reference returns a reference to a schema that has a type, and otherwise a copy of the schema.
func (g *generator) reference(name string, outer schema, at string) (schema, error) {
	target, _ := g.all[name].(schema)
	if target["properties"] == nil && target["enum"] == nil {
		prepared, err := g.prepare(target, at)
		if target["format"] != nil {
			delete(prepared, "description") // It describes the text, not the value.
		}
		maps.Copy(prepared, outer)
		return prepared, err
	}
	typed := strings.TrimSuffix(name, "OrNull")
	if err := g.use(typed); err != nil {
		return nil, err
	}
	outer["allOf"] = []any{schema{"$ref": "#/components/schemas/" + typed}}
	if target["nullable"] == true {
		outer["nullable"] = true
	}
	if typed != name {
		outer["description"] = target["description"]
	}
	return outer, nil
}

// enumeration gives an enumeration a type, and its values names.
func (g *generator) enumeration(prepared, s schema, at string) (schema, error) {
	name, err := nameOf(at)
	if err != nil {
		return nil, err
	}
	prefix := name
	if prefixes[name] != "" {
		prefix = prefixes[name]
	}
	values, _ := s["enum"].([]any)
	var constants []string
	for _, value := range values {
		constants = append(constants, fmt.Sprintf("%s_%v", prefix, value))
	}
	prepared["enum"], prepared["x-enum-varnames"] = values, constants
	return g.named(name, at, prepared), nil
}

// nameOf returns the name of the type of a schema at a place, which may be within another schema.
func nameOf(at string) (string, error) {
	if !strings.Contains(at, ".") {
		return at, nil
	}
	if names[at] == "" {
		return "", fmt.Errorf("add the name of the type of %s to names", at)
	}
	return names[at], nil
}

// named adds a schema that is within another one under a name, and returns a reference to it.
func (g *generator) named(name, at string, prepared schema) schema {
	if name == at {
		return prepared
	}
	g.used[name] = prepared
	return schema{"$ref": "#/components/schemas/" + name}
}

// object prepares the fields of an object, in their order in responses.
func (g *generator) object(prepared, s schema, at string) (schema, error) {
	if values, ok := s["additionalProperties"].(schema); ok {
		item, err := g.prepare(values, at+"{}")
		prepared["additionalProperties"] = item
		return prepared, err
	}
	properties, _ := s["properties"].(schema)
	required, _ := s["required"].([]any)
	fields := schema{}
	for name := range maps.Keys(properties) {
		property, _ := properties[name].(schema)
		field, err := g.prepare(property, at+"."+name)
		if err != nil {
			return nil, err
		}
		if field["$ref"] != nil {
			field = schema{"allOf": []any{field}}
		}
		field["x-order"] = slices.Index(append(slices.Clone(required), optional...), any(name))
		fields[name] = field
	}
	prepared["properties"] = fields
	name, err := nameOf(at)
	return g.named(name, at, prepared), err
}
