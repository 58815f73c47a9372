package docs

import (
	"fmt"
	"html"
	"slices"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/util"
)

// sampleLanguages are the languages of samples, in the order of their tabs. A test runs every block in one of them.
var sampleLanguages = []struct{ id, name string }{
	{"bash", "curl"}, {"python", "Python"}, {"r", "R"}, {"javascript", "JavaScript"}, {"go", "Go"},
}

// placeholders are the texts in samples that a reader, or the form on the page, replaces, with the fields of the form.
// codeRenderer adds the address of the API.
var placeholders = []struct{ text, field string }{
	{"YOUR_API_KEY", "key"},
	{"YOUR_DEVICE_ID", "device"},
	{"YOUR_INGEST_KEY", "ingest"},
	{"YOUR_HARDWARE_ID", "unit"},
	{defaultReceiverURL, "receiver"},
}

// groupSamples marks the first and the last block of each group: successive samples in different languages. Scripts
// show a group as tabs, otherwise its samples are one below the other.
func groupSamples(document ast.Node, source []byte) {
	var last ast.Node
	var languages []string
	for node := document.FirstChild(); node != nil; node = node.NextSibling() {
		language := ""
		if block, ok := node.(*ast.FencedCodeBlock); ok {
			language = string(block.Language(source))
		}
		if languageName(language) == "" {
			continue
		}
		continues := last != nil && last == node.PreviousSibling() && !slices.Contains(languages, language)
		if continues {
			last.SetAttributeString("last", false)
		} else {
			languages = nil
		}
		node.SetAttributeString("first", !continues)
		node.SetAttributeString("last", true)
		last, languages = node, append(languages, language)
	}
}

// languageName returns what the tab of a language shows, or "" if it has none.
func languageName(id string) string {
	for _, l := range sampleLanguages {
		if l.id == id {
			return l.name
		}
	}
	return ""
}

// codeRenderer renders blocks of code.
type codeRenderer struct {
	api string // base URL of the API
}

// RegisterFuncs implements renderer.NodeRenderer.
func (c codeRenderer) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindFencedCodeBlock, c.renderCode)
}

func (c codeRenderer) renderCode(
	w util.BufWriter, source []byte, node ast.Node, entering bool,
) (ast.WalkStatus, error) {
	block := node.(*ast.FencedCodeBlock) //nolint:forcetypeassert // RegisterFuncs names its kind.
	if !entering {
		return ast.WalkContinue, nil
	}
	language := string(block.Language(source))
	lines := string(block.Lines().Value(source))
	text := `<pre tabindex="0"><code class="language-` + html.EscapeString(language) + `">` +
		c.highlight(language, lines) + "</code></pre>\n"
	if name := languageName(language); name != "" {
		if language == "bash" && !strings.Contains(lines, "curl") {
			name = "Shell" // It calls the program roomsensor.
		}
		text = fmt.Sprintf(`<div class="sample" data-language="%[1]s"><p class="language">%[1]s</p>%[2]s</div>`, name, text)
	}
	if first, _ := block.AttributeString("first"); first == true {
		text = `<div class="samples">` + "\n" + text
	}
	if last, _ := block.AttributeString("last"); last == true {
		text += "</div>\n"
	}
	_, err := w.WriteString(text)
	return ast.WalkContinue, err //nolint:wrapcheck // goldmark hands it to the caller of Render.
}

// highlight returns code as HTML, with a span around each token that has a color and around each placeholder.
func (c codeRenderer) highlight(language, code string) string {
	var out strings.Builder
	for _, t := range tokens(language, code) {
		text := c.markPlaceholders(html.EscapeString(t.text))
		if t.class != "" {
			text = `<span class="` + t.class + `">` + text + "</span>"
		}
		_, _ = out.WriteString(text) // Writing to memory cannot fail.
	}
	return out.String()
}

// markPlaceholders encloses placeholders, which a token contains whole, in a span.
func (c codeRenderer) markPlaceholders(text string) string {
	mark := func(found, field string) {
		text = strings.ReplaceAll(text, found, `<span class="fill" data-field="`+field+`">`+found+"</span>")
	}
	mark(html.EscapeString(c.api), "api")
	for _, p := range placeholders {
		mark(p.text, p.field)
	}
	return text
}
