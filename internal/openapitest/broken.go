package openapitest

import (
	"maps"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"pgregory.net/rapid"
)

// odd are texts that are seldom right, and that break what is careless.
var odd = []string{
	"", " ", "x", "0", "-1", "1.5", "1e3", "null", "true", "NaN", "[]", "{}", "[object Object]", "%", "%00", "'", `"`,
	"\x00", "a\x00b", "\r\n", "\t", "\x7f", "\u0085", "\u202e", "\ufeff", "\ufffd", "é", "e\u0301", "🏠", "١", "½",
	"../../etc/passwd", "' OR 1=1 --", "${7*7}", "<script>", "=1+1", "dev:1", "2026-01-01", "2026-13-01T00:00:00Z",
	"2026-11-20T10:00:00+00:00", "2026-11-20t10:00:00z", "2026-11-20T24:00:00Z", "2026-11-20T10:00:60Z",
	"2026-11-20T10:00:00.Z", "2026-11-20T10:00:00,5Z", "24H", "1w", "0d", "-1h", "1.5h", "90", "999999999999999999999d",
	"00000000000000000000000000000000", "urn:uuid:00000000-0000-4000-8000-000000000001",
	"{00000000-0000-4000-8000-000000000001}", "9223372036854775808", "18446744073709551616",
	strings.Repeat("9", 400), strings.Repeat("a", 9000), strings.Repeat("🏠", 2000), strings.Repeat("[", 3000),
}

// notUTF8 are texts that no JSON and no parameter can hold.
var notUTF8 = []string{"\xff", "\xc3\x28", "a\xed\xa0\x80", "\xf4\x90\x80\x80", "x\x80"}

// spoil makes a value that a schema refuses out of one that it allows; nil and
// false where it refuses nothing.
func (s Samples) spoil(t *rapid.T, name string, schema *openapi3.Schema) (broken any, ok bool) {
	if schema.Type == nil {
		return nil, false
	}
	good := s.draw(t, name, schema)
	candidates := []any{nil, true, 1.0, -1.0, 0.5, 1e300, []any{}, []any{[]any{"x"}}, map[string]any{"": nil}}
	for _, text := range odd {
		candidates = append(candidates, text)
	}
	switch value := good.(type) {
	case string:
		half, longer := strings.ToValidUTF8(value[:len(value)/2], ""), strings.Repeat(value+"x", 600)
		candidates = append(candidates, value+"\x00", " "+value, value+"\n", strings.ToLower(value), half, longer)
	case float64:
		candidates = append(candidates, value+0.5, -value, value*1e6)
	case []any:
		if len(value) > 0 {
			item, _ := s.spoil(t, name, schema.Items.Value)
			candidates = append(candidates, append(slices.Clone(value), item), []any{value})
		}
	case map[string]any:
		candidates = append(candidates, s.spoilObject(t, value, schema)...)
	}
	return first(t, candidates, func(value any) bool { return !allows(schema, value) })
}

// first finds what fits, from a place on that is drawn.
func first[T any](t *rapid.T, candidates []T, fits func(T) bool) (found T, ok bool) {
	from := rapid.IntRange(0, len(candidates)-1).Draw(t, "from")
	for i := range candidates {
		if candidate := candidates[(from+i)%len(candidates)]; fits(candidate) {
			return candidate, true
		}
	}
	return found, false
}

// spoilObject breaks an object in one place.
func (s Samples) spoilObject(t *rapid.T, good map[string]any, schema *openapi3.Schema) []any {
	with := func(name string, value any) map[string]any {
		changed := maps.Clone(good)
		changed[name] = value
		return changed
	}
	candidates := []any{with("unknown", 1.0), with("", "x"), with("a b", "x"), with(strings.Repeat("k", 70), "x")}
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		if broken, ok := s.spoil(t, name, schema.Properties[name].Value); ok {
			candidates = append(candidates, with(name, broken))
		}
		without := maps.Clone(good)
		delete(without, name)
		candidates = append(candidates, without)
	}
	if more := schema.AdditionalProperties.Schema; more != nil {
		if broken, ok := s.spoil(t, "more", more.Value); ok {
			candidates = append(candidates, with("more", broken))
		}
	}
	return candidates
}
