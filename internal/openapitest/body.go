package openapitest

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"pgregory.net/rapid"
)

const jsonType = "application/json"

// bodySchema is that of the JSON that the operation takes.
func (b *builder) bodySchema() *openapi3.Schema {
	return b.operation.RequestBody.Value.Content[jsonType].Schema.Value
}

// drawBody makes a body that the document takes: one value or, where it takes
// them, several lines.
func (b *builder) drawBody() {
	types := slices.Sorted(maps.Keys(b.operation.RequestBody.Value.Content))
	contentType := rapid.SampledFrom(types).Draw(b.t, "content type")
	b.Header.Set("Content-Type", contentType)
	for range rapid.IntRange(1, 1+2*len(types[1:])).Draw(b.t, "values") {
		b.Body = append(b.Body, b.encoded(b.Samples.draw(b.t, "body", b.bodySchema()))...)
		if contentType == jsonType {
			return
		}
		b.Body = append(b.Body, '\n')
	}
}

// encoded is JSON in one of its forms.
func (b *builder) encoded(value any) []byte {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(b.often())
	if err := encoder.Encode(value); err != nil {
		panic(err) // It is made of what JSON knows.
	}
	line := bytes.TrimSpace(text.Bytes())
	if b.seldom() {
		return bytes.ReplaceAll(line, []byte("_"), []byte(`\u005f`))
	}
	return line
}

// spoilFields makes a value that the schema refuses, in place of the body, which
// may have been none.
func (b *builder) spoilFields() {
	if value, ok := b.Samples.spoil(b.t, "body", b.bodySchema()); ok {
		b.Body = b.encoded(value)
		b.Faults = slices.DeleteFunc(b.Faults, func(f Fault) bool { return f == BadBody })
		b.fault(BadFields)
	}
}

// spoilBody makes of a body what is none.
func (b *builder) spoilBody() {
	whole := string(bytes.TrimSpace(b.Body))
	inner := strings.TrimPrefix(whole, "{")
	broken := []string{
		"", " ", "null", "1", `"x"`, "[]", "[" + whole + "]", "{", "}", "\x00", "<upload/>", "display_name=x",
		"\ufeff" + whole, whole + whole, whole + "x", whole[:max(0, len(whole)-1)], `{"a":` + strings.Repeat("[", 20_000),
		`{"a":1,"a":1` + comma(inner), `{"a":"` + "\xff" + `"` + comma(inner), `{"a":"\ud800"` + comma(inner),
		`{a:1` + comma(inner), `{"a":01` + comma(inner), "{'a':1" + comma(inner),
	}
	if b.MaxBody > 0 {
		broken = append(broken, whole+strings.Repeat(" ", max(0, b.MaxBody+1-len(whole))))
	}
	b.Body = []byte(rapid.SampledFrom(broken).Draw(b.t, "broken body"))
	b.fault(BadBody)
}

// comma goes on with an object after a member.
func comma(inner string) string {
	if strings.HasPrefix(strings.TrimSpace(inner), "}") {
		return inner
	}
	return "," + inner
}

// refuses reports whether a parameter does not take a text.
func refuses(p *openapi3.Parameter, text string) bool {
	schema := p.Schema.Value
	if p.In == openapi3.ParameterInHeader && !headerValue(text) {
		return false // It cannot be sent.
	}
	switch {
	case schema.Type.Is("string"):
		return !allows(schema, text)
	case schema.Type.Is("integer"):
		n, err := strconv.ParseInt(text, 10, 64)
		return err != nil || !allows(schema, float64(n))
	case schema.Type.Is("array"):
		refused := func(item string) bool { return !allows(schema.Items.Value, item) }
		return slices.ContainsFunc(strings.Split(text, ","), refused)
	default:
		return false // Of an object every text is a property.
	}
}
