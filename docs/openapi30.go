package docs

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// OpenAPI30 returns the document of the API in OpenAPI 3.0.3, as JSON with the default addresses, for generators that
// do not read OpenAPI 3.1. The operations HEAD are left out, because they double a generated client.
func OpenAPI30() ([]byte, error) { return render30(OpenAPI(), false) }

// OpenAPI30WithHead is like OpenAPI30, with the operations HEAD.
func OpenAPI30WithHead() ([]byte, error) { return render30(OpenAPI(), true) }

// render30 converts an OpenAPI document from YAML in 3.1 to JSON in 3.0.3.
func render30(text []byte, withHead bool) ([]byte, error) {
	asJSON, err := toJSON(string(text))
	if err != nil {
		return nil, err
	}
	return downgrade(asJSON, withHead)
}

// downgrade converts an OpenAPI document from 3.1 to 3.0.3.
func downgrade(asJSON []byte, withHead bool) ([]byte, error) {
	var document, source map[string]any
	if err := errors.Join(json.Unmarshal(asJSON, &document), json.Unmarshal(asJSON, &source)); err != nil {
		return nil, fmt.Errorf("reading a document: %w", err)
	}
	if !withHead {
		removeHead(document)
	}
	if err := (&downgrader{document: document, source: source, added: map[string]any{}}).run(); err != nil {
		return nil, fmt.Errorf("converting a document to OpenAPI 3.0: %w", err)
	}
	text, err := json.MarshalIndent(document, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encoding a document: %w", err)
	}
	return append(text, '\n'), nil
}

// removeHead removes the operations HEAD, their tag, and the responses that only they have.
func removeHead(document map[string]any) {
	for _, item := range child(document, "paths") {
		if operations, ok := item.(map[string]any); ok {
			delete(operations, "head")
		}
	}
	tags, _ := document["tags"].([]any)
	document["tags"] = slices.DeleteFunc(tags, func(tag any) bool {
		named, ok := tag.(map[string]any)
		return ok && named["name"] == "HEAD"
	})
	maps.DeleteFunc(child(document, "components", "responses"), func(name string, _ any) bool {
		return strings.HasPrefix(name, "Head")
	})
}

// child returns the object at a path of a document, or nil.
func child(object map[string]any, path ...string) map[string]any {
	for _, name := range path {
		object, _ = object[name].(map[string]any)
	}
	return object
}

// downgrader converts a document in place.
//
// OpenAPI 3.0 has nullable in place of the type null, enum in place of const, one example in place of several, and no
// keyword beside a $ref. What it cannot say at all is left out: conditions, and patterns of the names of properties. So
// are the parts of allOf that only narrow the values of another part, such as the codes of an error response, because
// generators make a type of each of them. A document in 3.0 therefore allows all that the one in 3.1 allows, and more.
type downgrader struct {
	document map[string]any // becomes 3.0
	source   map[string]any // stays 3.1
	added    map[string]any // schemas for "this schema or null"
}

func (d *downgrader) run() error {
	d.document["openapi"] = "3.0.3"
	if info := child(d.document, "info"); info["summary"] != nil {
		description, _ := info["description"].(string)
		info["description"] = fmt.Sprintf("%s\n\n%s", info["summary"], description)
		delete(info, "summary")
	}
	if err := d.object(d.document, "#"); err != nil {
		return err
	}
	maps.Copy(child(d.document, "components", "schemas"), d.added)
	return nil
}

// object converts the schemas in a part of the document that is not a schema.
func (d *downgrader) object(node any, at string) error {
	switch node := node.(type) {
	case []any:
		for i, item := range node {
			if err := d.object(item, fmt.Sprintf("%s/%d", at, i)); err != nil {
				return err
			}
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(node)) {
			if err := d.member(node, key, at+"/"+key); err != nil {
				return err
			}
		}
	}
	return nil
}

// member converts one member of an object that is not a schema.
func (d *downgrader) member(node map[string]any, key, at string) (err error) {
	switch key {
	case "webhooks", "jsonSchemaDialect", "pathItems":
		return fmt.Errorf("%s does not exist in OpenAPI 3.0", at)
	case "example", "examples": // Values, not descriptions.
	case "schema":
		node[key], err = d.schema(node[key], at)
	case "schemas":
		err = d.schemas(node[key], at)
	default:
		err = d.object(node[key], at)
	}
	return err
}

// schemas converts the schemas of an object in place.
func (d *downgrader) schemas(node any, at string) (err error) {
	named, ok := node.(map[string]any)
	if !ok {
		return fmt.Errorf("%s is not an object", at)
	}
	for _, name := range slices.Sorted(maps.Keys(named)) {
		if named[name], err = d.schema(named[name], at+"/"+name); err != nil {
			return err
		}
	}
	return nil
}

// kept are the keywords that mean the same in both versions and contain no schema.
var kept = []string{
	"title", "description", "format", "pattern", "minLength", "maxLength", "minimum", "maximum", "multipleOf", "minItems",
	"maxItems", "uniqueItems", "minProperties", "maxProperties", "required", "enum", "default", "example", "readOnly",
	"writeOnly", "deprecated",
}

// omitted are the keywords that OpenAPI 3.0 does not have, and without which more is valid.
var omitted = []string{"propertyNames", "if", "then", "else", "$comment"}

// schema returns a schema in 3.0.
func (d *downgrader) schema(node any, at string) (any, error) {
	old, ok := node.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%s is not an object, which OpenAPI 3.0 requires", at)
	}
	if ref, ok := old["$ref"].(string); ok {
		return d.reference(ref, old), nil
	}
	result := map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(old)) {
		if err := d.keyword(result, key, old[key], at+"/"+key); err != nil {
			return nil, err
		}
	}
	addNull(result)
	return result, nil
}

// keyword adds to a schema in 3.0 what a keyword of the schema in 3.1 says.
func (d *downgrader) keyword(result map[string]any, key string, value any, at string) (err error) {
	switch key {
	case "type":
		return addType(result, value, at)
	case "const":
		result["enum"] = []any{value}
	case "examples":
		if values, ok := value.([]any); ok && len(values) > 0 {
			result["example"] = values[0]
		}
	case "exclusiveMinimum":
		result[key], result["minimum"] = true, value
	case "exclusiveMaximum":
		result[key], result["maximum"] = true, value
	case "properties":
		result[key] = value
		return d.schemas(value, at)
	case "items":
		result[key], err = d.schema(value, at)
	case "additionalProperties":
		result[key] = value
		if _, ok := value.(bool); !ok {
			result[key], err = d.schema(value, at)
		}
	case "anyOf":
		return d.alternatives(result, value, at)
	case "allOf":
		return d.conjunction(result, value, at)
	default:
		switch {
		case slices.Contains(kept, key):
			result[key] = value
		case !slices.Contains(omitted, key):
			return fmt.Errorf("%s has no conversion to OpenAPI 3.0", at)
		}
	}
	return err
}

// addType adds a type, without null.
func addType(result map[string]any, value any, at string) error {
	types, ok := value.([]any)
	if !ok {
		types = []any{value}
	}
	types = slices.DeleteFunc(slices.Clone(types), func(name any) bool {
		if name == "null" {
			result["nullable"] = true
		}
		return name == "null"
	})
	if len(types) != 1 {
		return fmt.Errorf("%s has %d types other than null, and OpenAPI 3.0 allows exactly one", at, len(types))
	}
	result["type"] = types[0]
	return nil
}

// addNull adds null to the values of a nullable schema, because nullable does not do that.
func addNull(schema map[string]any) {
	if values, ok := schema["enum"].([]any); ok && schema["nullable"] == true && !slices.Contains(values, nil) {
		schema["enum"] = append(slices.Clone(values), nil)
	}
}

// alternatives converts anyOf. It knows two forms: conditions without a type, which are left out, and a schema or null.
func (d *downgrader) alternatives(result map[string]any, value any, at string) error {
	members, _ := value.([]any)
	if !slices.ContainsFunc(members, hasType) {
		return nil
	}
	if len(members) != 2 || !isNull(members[1]) {
		return fmt.Errorf("%s has no conversion to OpenAPI 3.0, except for a schema or null", at)
	}
	first, _ := members[0].(map[string]any)
	ref, ok := first["$ref"].(string)
	if !ok || len(first) != 1 {
		return fmt.Errorf("%s must be a $ref or null", at)
	}
	other, err := d.schema(d.original(ref), at)
	if err != nil {
		return err
	}
	object, _ := other.(map[string]any)
	if object["type"] == "object" && strings.Contains(at, "/properties/") {
		// A component of its own, so that generators find a name for it.
		name := "Nullable" + ref[strings.LastIndex(ref, "/")+1:]
		object["nullable"] = true
		d.added[name] = object
		result["nullable"], result["allOf"] = true, []any{map[string]any{"$ref": "#/components/schemas/" + name}}
		return nil
	}
	for key, value := range object {
		if _, ok := result[key]; !ok {
			result[key] = value
		}
	}
	result["nullable"] = true
	return nil
}

func isNull(node any) bool {
	schema, _ := node.(map[string]any)
	return len(schema) == 1 && schema["type"] == "null"
}

// hasType reports whether a schema is more than conditions for the values of another one.
func hasType(node any) bool {
	schema, _ := node.(map[string]any)
	return schema["type"] != nil || schema["$ref"] != nil
}

// conjunction converts allOf without the members that only narrow others. If one is left, it replaces the whole.
func (d *downgrader) conjunction(result map[string]any, value any, at string) error {
	members, _ := value.([]any)
	var left []any
	for i, member := range members {
		if !hasType(member) {
			continue
		}
		converted, err := d.schema(member, fmt.Sprintf("%s/%d", at, i))
		if err != nil {
			return err
		}
		left = append(left, converted)
	}
	if len(left) == 0 {
		return fmt.Errorf("%s has no member with a type", at)
	}
	if only, ok := left[0].(map[string]any); ok && len(left) == 1 && len(result) == 0 {
		maps.Copy(result, only)
		return nil
	}
	result["allOf"] = left
	return nil
}

// reference returns a $ref. 3.0 ignores keywords beside it, so that they move around it.
func (d *downgrader) reference(ref string, old map[string]any) map[string]any {
	alone := map[string]any{"$ref": ref}
	if len(old) == 1 {
		return alone
	}
	result := map[string]any{"allOf": []any{alone}}
	for key, value := range old {
		if values, ok := value.([]any); ok && key == "examples" {
			result["example"] = values[0]
		} else if key != "$ref" {
			result[key] = value
		}
	}
	if d.allowsNull(ref) {
		result["nullable"] = true
	}
	return result
}

// original returns a copy of the schema of a reference, in 3.1.
func (d *downgrader) original(ref string) map[string]any {
	return maps.Clone(child(d.source, strings.Split(strings.TrimPrefix(ref, "#/"), "/")...))
}

// allowsNull reports whether a referenced schema allows null.
func (d *downgrader) allowsNull(ref string) bool {
	schema := d.original(ref)
	if next, ok := schema["$ref"].(string); ok {
		return d.allowsNull(next)
	}
	types, _ := schema["type"].([]any)
	members, _ := schema["anyOf"].([]any)
	return slices.Contains(types, any("null")) || slices.ContainsFunc(members, isNull)
}
