package docs

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// searchIndex is the text of all pages. The script of the pages loads it when a reader begins to search.
type searchIndex struct{ entries []searchEntry }

// searchEntry is a page, or a part of one below a heading.
type searchEntry struct {
	URL     string `json:"u"` // relative to /docs
	Page    string `json:"p"`
	Heading string `json:"h"` // empty for the beginning of a page
	Text    string `json:"t"`
}

// joined removes the spaces that addWords leaves between inline code and punctuation.
var joined = strings.NewReplacer(" ,", ",", " .", ".", " ;", ";", " :", ":", " )", ")", "( ", "(")

func (x *searchIndex) add(url, page, heading, text string) {
	text = joined.Replace(strings.Join(strings.Fields(text), " "))
	x.entries = append(x.entries, searchEntry{url, page, heading, text})
}

// addText adds each part of a page.
func (x *searchIndex) addText(path string, m *markdownText) {
	for i, part := range m.parts {
		if i == 0 {
			x.add(path, m.title, "", part.words.String())
			continue
		}
		x.add(path+"#"+part.ID, m.title, part.Text, part.words.String())
	}
}

// addOperations adds the operations that a reference page shows of an OpenAPI document to the search and to the
// Markdown of the page.
func (s *site) addOperations(path, page, name string, document map[string]any) {
	linked := regexp.MustCompile(`\]\(` + regexp.QuoteMeta(s.options.localize(defaultDocsURL)) + `(/[^)#\s]+)`)
	var markdown strings.Builder
	fmt.Fprintf(&markdown, "# %s\n\nParameters, bodies and responses are in [%s.yaml](%s/%[2]s.yaml).\n",
		page, name, s.up(path))
	paths := child(document, "paths")
	for _, route := range slices.Sorted(maps.Keys(paths)) {
		for _, method := range slices.Sorted(maps.Keys(child(paths, route))) {
			o := child(paths, route, method)
			tags, _ := o["tags"].([]any)
			description, _ := o["description"].(string) // Some have none.
			entry := searchEntry{
				URL: fmt.Sprintf("%s#/%v/%v", path, tags[0], o["operationId"]), Page: page,
				Heading: strings.ToUpper(method) + " " + route, Text: fmt.Sprintf("%v. %s", o["summary"], description),
			}
			s.search.entries = append(s.search.entries, entry)
			fmt.Fprintf(&markdown, "\n## %s\n\n%s\n", entry.Heading, entry.Text)
		}
	}
	s.addMarkdown(path, linked.ReplaceAllString(markdown.String(), "]("+s.up(path)+"$1.md"))
}

// addSearch adds the index. It comes last, after all pages.
func (s *site) addSearch() error {
	text, err := json.Marshal(s.search.entries)
	if err != nil {
		return fmt.Errorf("encoding the search index: %w", err)
	}
	s.files[prefix+"/assets/search.json"] = newFile("application/json", text)
	return nil
}
