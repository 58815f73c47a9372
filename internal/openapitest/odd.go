package openapitest

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"pgregory.net/rapid"
)

// escaped writes a text for a path or a query, in one of the ways that there
// are.
func (b *builder) escaped(text string) string {
	if len(text) > 1000 || !b.seldom() {
		return strings.ReplaceAll(url.QueryEscape(text), "+", "%20")
	}
	var all strings.Builder
	for i := range len(text) {
		fmt.Fprintf(&all, "%%%02x", text[i])
	}
	return all.String()
}

// harmless are headers that change nothing about whether a request is valid.
var harmless = [][2]string{
	{"Accept", "application/xml"},
	{"Accept", "*/*;q=0"},
	{"Accept-Encoding", "gzip"},
	{"Accept-Encoding", "zstd, gzip;q=0.5"},
	{"Accept-Encoding", "br;q=1.0, *;q=0"},
	{"Accept-Encoding", ";;,q=\xff"},
	{"Connection", "close"},
	{"Content-Type", "text/html"},
	{"Cookie", "a=b; key=c"},
	{"Forwarded", "for=_;proto=https"},
	{"If-Match", `"x"`},
	{"If-Modified-Since", "Fri, 20 Nov 2026 10:00:00 GMT"},
	{"If-None-Match", "*"},
	{"If-None-Match", `W/"x", "y`},
	{"Origin", "https://elsewhere.example"},
	{"Range", "bytes=0-9"},
	{"Referer", "https://elsewhere.example/?q=\xff"},
	{"Upgrade", "h2c"},
	{"X-Forwarded-Prefix", "/../"},
	{"X-Http-Method-Override", "DELETE"},
	{"X-Request-Id", "of the client"},
}

// decorate adds what a service has to pass over.
func (b *builder) decorate() {
	for b.seldom() {
		extra := rapid.SampledFrom(harmless).Draw(b.t, "header")
		if b.Header.Get(extra[0]) == "" {
			b.Header.Set(extra[0], extra[1])
		}
	}
	if b.seldom() {
		b.raw = append(b.raw, "")
	}
	if b.operation.RequestBody == nil && b.seldom() {
		b.Body = []byte(`{"display_name":null}`)
	}
}

// spoilSomething breaks the request in one place.
func (b *builder) spoilSomething() {
	ways := []func(){
		b.spoilParameter, b.spoilParameter, b.spoilParameter, b.spoilText, b.spoilText,
		b.spoilQuery, b.spoilCredentials, b.spoilRoute,
	}
	if b.operation.RequestBody != nil {
		ways = append(ways, b.spoilFields, b.spoilFields, b.spoilFields, b.spoilBody, b.spoilBody, b.spoilHeader)
	}
	rapid.SampledFrom(ways).Draw(b.t, "way")()
}

func (b *builder) fault(f Fault) { b.Faults = append(b.Faults, f) }

// spoilParameter gives a parameter a value that its schema refuses.
func (b *builder) spoilParameter() {
	if len(b.operation.Parameters) == 0 {
		return
	}
	p := rapid.SampledFrom(b.operation.Parameters).Draw(b.t, "parameter").Value
	good := text(b.Samples.draw(b.t, p.Name, p.Schema.Value))
	candidates := append(slices.Clone(odd), good+"!")
	if most := p.Schema.Value.MaxItems; most != nil {
		candidates = append(candidates, strings.Repeat(good[:min(len(good), 40)]+",", int(*most))) //nolint:gosec // A length.
	}
	broken, ok := first(b.t, candidates, func(text string) bool { return refuses(p, text) })
	if !ok {
		return
	}
	b.set(p, broken)
	b.fault(BadParameter)
}

// spoilText gives a parameter of the query, or a header that is looked at, what
// is no text at all.
func (b *builder) spoilText() {
	for _, p := range b.operation.Parameters {
		if p.Value.In == openapi3.ParameterInHeader && p.Value.Schema.Value.MaxLength != nil && b.often() {
			b.Header.Set(p.Value.Name, rapid.SampledFrom(notUTF8).Draw(b.t, "no UTF-8"))
			b.fault(BadParameter)
			return
		}
	}
	if len(b.pairs) == 0 {
		return
	}
	i := rapid.IntRange(0, len(b.pairs)-1).Draw(b.t, "which")
	b.pairs[i].value += rapid.SampledFrom(notUTF8).Draw(b.t, "no UTF-8")
	b.fault(BadParameter)
}

// spoilQuery adds what no operation takes, or says something twice.
func (b *builder) spoilQuery() {
	wrong := []string{
		"x=1", "form=a", "device=b", "Limit=1", "%00=", "metadata.=x", "%zz", "a=%", "a;b", "%ff=1", "x[]=1", "cursor[]=x",
	}
	if len(b.pairs) > 0 {
		again := rapid.SampledFrom(b.pairs).Draw(b.t, "twice")
		wrong = append(wrong, b.escaped(again.name)+"="+b.escaped(again.value))
	}
	b.raw = append(b.raw, rapid.SampledFrom(wrong).Draw(b.t, "query"))
	b.fault(BadQuery)
}

func (b *builder) spoilCredentials() {
	for i := range b.pairs {
		if b.pairs[i].name == "key" {
			b.pairs[i].value = rapid.SampledFrom(b.BadKeys).Draw(b.t, "bad key")
		}
	}
	key := rapid.SampledFrom(slices.Concat(b.Keys, b.BadKeys)).Draw(b.t, "key to spoil")
	b.Header["Authorization"] = rapid.SampledFrom([][]string{
		nil,
		{""},
		{"Bearer"},
		{"Basic " + key},
		{key},
		{"Bearer " + key, "Bearer " + key},
		{"Bearer " + key + ", Bearer " + key},
		{"Bearer " + key + "x"},
		{"Bearer \xff" + key},
		{"Bearer " + rapid.SampledFrom(b.BadKeys).Draw(b.t, "bad key")},
	}).Draw(b.t, "authorization")
	b.fault(BadCredentials)
}

// spoilRoute asks for what is not there.
func (b *builder) spoilRoute() {
	item := b.Document.spec.Paths.Value(strings.TrimPrefix(b.Path, b.Document.base))
	if item == nil {
		return // Spoilt already.
	}
	b.fault(BadRoute)
	if b.often() {
		b.Path = rapid.SampledFrom([]string{
			b.Path + "/", b.Path + "//", "/" + b.Path, b.Path + "/nothing/there/at/all", b.Path + ".json", "/v0" + b.Path,
			b.Path + "/..", strings.ToUpper(b.Path), b.Path + "%2f", b.Path + "%00", strings.Repeat("/x", 4000),
		}).Draw(b.t, "path")
		return
	}
	var others []string
	for _, method := range []string{
		"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "BREW", "get",
	} {
		if item.Operations()[method] == nil {
			others = append(others, method)
		}
	}
	b.Method = rapid.SampledFrom(others).Draw(b.t, "method")
}

// spoilHeader sends what the body is announced by in a wrong way.
func (b *builder) spoilHeader() {
	b.Header["Content-Type"] = rapid.SampledFrom([][]string{
		nil,
		{""},
		{"text/plain"},
		{"application/x-www-form-urlencoded"},
		{"application/merge-patch+json"},
		{"application/json", "application/json"},
		{"application/json; charset=utf-16"},
		{"application/json;;"},
		{"application/json\xff"},
	}).Draw(b.t, "content type")
	if b.seldom() {
		b.Header.Set("Content-Encoding", "gzip")
	}
	b.fault(BadHeader)
}
