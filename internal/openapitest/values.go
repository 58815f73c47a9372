package openapitest

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"pgregory.net/rapid"
)

// Samples are values that mean something to a service, by the name of the
// parameter or field that takes them: where its schema allows them.
type Samples map[string][]string

// allows reports whether a value is one that the document takes.
func allows(s *openapi3.Schema, value any) bool {
	return s.VisitJSON(value, openapi3.EnableJSONSchema2020(), openapi3.VisitAsRequest()) == nil
}

// verdicts are kept for the texts that come again and again: every look at a
// schema compiles it anew.
var verdicts sync.Map

type verdict struct {
	schema *openapi3.Schema
	text   string
}

// allowsText is allows for a text that is known before.
func allowsText(s *openapi3.Schema, text string) bool {
	if known, ok := verdicts.Load(verdict{s, text}); ok {
		return known.(bool) //nolint:forcetypeassert // Nothing else is kept.
	}
	allowed := allows(s, text)
	verdicts.Store(verdict{s, text}, allowed)
	return allowed
}

// draw makes a value that a schema allows. Strings of a field that has samples
// are those as a rule.
func (s Samples) draw(t *rapid.T, name string, schema *openapi3.Schema) any {
	if sample, ok := s.sample(t, name, schema); ok {
		return sample
	}
	switch {
	case len(schema.Enum) > 0:
		return rapid.SampledFrom(schema.Enum).Draw(t, name)
	case schema.Type == nil:
		return drawAny(t, name)
	}
	switch kind := rapid.SampledFrom(schema.Type.Slice()).Draw(t, "type of "+name); kind {
	case "null":
		return nil
	case "string":
		return drawString(t, name, schema)
	case "integer", "number":
		return drawNumber(t, name, kind, schema)
	case "array":
		return s.drawArray(t, name, schema)
	case "object":
		return s.drawObject(t, name, schema)
	default:
		panic("no values are known of type " + kind)
	}
}

// sample is one of the samples of a name that the schema allows, as a rule.
func (s Samples) sample(t *rapid.T, name string, schema *openapi3.Schema) (text string, ok bool) {
	allowed := slices.DeleteFunc(slices.Clone(s[name]), func(text string) bool { return !allowsText(schema, text) })
	if len(allowed) == 0 || rapid.IntRange(0, 3).Draw(t, "sample of "+name) == 0 {
		return "", false
	}
	return rapid.SampledFrom(allowed).Draw(t, name), true
}

// drawAny is for a schema that allows everything.
func drawAny(t *rapid.T, name string) any {
	return rapid.SampledFrom([]any{
		nil, true, 0.0, -1.5, "", "x", []any{}, []any{nil, "y"}, map[string]any{}, map[string]any{"a": nil},
	}).Draw(t, name)
}

func drawString(t *rapid.T, name string, schema *openapi3.Schema) string {
	longest := 40
	if schema.MaxLength != nil {
		longest = int(*schema.MaxLength) //nolint:gosec // A length in a document.
	}
	made := rapid.StringN(int(schema.MinLength), longest, -1) //nolint:gosec // Likewise.
	switch {
	case schema.Format == "date-time":
		made = times
	case schema.Pattern != "":
		made = rapid.StringMatching(schema.Pattern)
	}
	filled := rapid.Map(rapid.SampledFrom([]string{"x", "0", "é", "🏠", "-", " ", `"`, "\u2028"}),
		func(r string) string { return strings.Repeat(r, longest) })
	return rapid.OneOf(made, made, filled, rapid.SampledFrom(odd)).
		Filter(func(text string) bool { return allows(schema, text) }).Draw(t, name)
}

// times are UTC with Z and up to nine digits of a fraction, of all years.
var times = rapid.Custom(func(t *rapid.T) string {
	first := time.Date(0, time.January, 1, 0, 0, 0, 0, time.UTC).Unix()
	last := time.Date(9999, time.December, 31, 23, 59, 59, 0, time.UTC).Unix()
	text := time.Unix(rapid.Int64Range(first, last).Draw(t, "second"), 0).UTC().Format("2006-01-02T15:04:05")
	if digits := rapid.StringMatching(`[0-9]{0,9}`).Draw(t, "fraction"); digits != "" {
		text += "." + digits
	}
	return text + "Z"
})

func drawNumber(t *rapid.T, name, kind string, schema *openapi3.Schema) any {
	least, greatest := -1e9, 1e9
	if schema.Min != nil {
		least = *schema.Min
	}
	if schema.Max != nil {
		greatest = *schema.Max
	}
	if kind == "number" {
		return rapid.Float64Range(least, greatest).Draw(t, name)
	}
	return float64(rapid.Int64Range(int64(least), int64(greatest)).Draw(t, name))
}

func (s Samples) drawArray(t *rapid.T, name string, schema *openapi3.Schema) []any {
	list := make([]any, rapid.IntRange(int(schema.MinItems), 4).Draw(t, "items of "+name)) //nolint:gosec // Likewise.
	for i := range list {
		list[i] = s.draw(t, name, schema.Items.Value)
	}
	return list
}

func (s Samples) drawObject(t *rapid.T, name string, schema *openapi3.Schema) map[string]any {
	object := map[string]any{}
	for _, property := range slices.Sorted(maps.Keys(schema.Properties)) {
		inner := schema.Properties[property].Value
		with := rapid.IntRange(0, 9).Draw(t, "with "+property)
		// What may be anything is there for later: it is sent seldom.
		if slices.Contains(schema.Required, property) || with == 1 || (with > 5 && inner.Type != nil) {
			object[property] = s.draw(t, property, inner)
		}
	}
	for range rapid.IntRange(0, 3).Draw(t, "more of "+name) {
		if schema.AdditionalProperties.Schema != nil {
			more, ok := s.sample(t, "name in "+name, schema.PropertyNames.Value)
			if !ok {
				more = drawString(t, "name in "+name, schema.PropertyNames.Value)
			}
			object[more] = s.draw(t, "value in "+name, schema.AdditionalProperties.Schema.Value)
		}
	}
	if len(object) < int(schema.MinProps) { //nolint:gosec // Likewise.
		property := rapid.SampledFrom(slices.Sorted(maps.Keys(schema.Properties))).Draw(t, "one of "+name)
		object[property] = s.draw(t, property, schema.Properties[property].Value)
	}
	return object
}
