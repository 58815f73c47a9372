package docs

import (
	"encoding/json"
	"fmt"
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

// operation is what the search shows of an operation of an OpenAPI document.
type operation struct {
	ID          string   `json:"operationId"` //nolint:tagliatelle // OpenAPI names it.
	Summary     string   `json:"summary"`
	Description string   `json:"description"`
	Tags        []string `json:"tags"`
}

// addOperations adds the operations that a reference page shows.
func (x *searchIndex) addOperations(path, page string, document []byte) error {
	var parsed struct {
		Paths map[string]map[string]json.RawMessage `json:"paths"`
	}
	if err := json.Unmarshal(document, &parsed); err != nil {
		return fmt.Errorf("reading the paths of %s: %w", page, err)
	}
	var found []searchEntry
	for route, item := range parsed.Paths {
		for method, encoded := range item {
			var o operation
			if err := json.Unmarshal(encoded, &o); err != nil {
				return fmt.Errorf("reading %s %s: %w", method, route, err)
			}
			found = append(found, searchEntry{
				URL: path + "#/" + strings.Join(o.Tags, "") + "/" + o.ID, Page: page,
				Heading: strings.ToUpper(method) + " " + route, Text: o.Summary + ". " + o.Description,
			})
		}
	}
	slices.SortFunc(found, func(a, b searchEntry) int { return strings.Compare(a.URL, b.URL) })
	x.entries = append(x.entries, found...)
	return nil
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
