package docs

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"

	"roomsensor/internal/roomsensor"
)

const (
	markdownType = "text/markdown; charset=utf-8"
	plainType    = "text/plain; charset=utf-8"
)

// markdownPath returns the path of the Markdown of a page, both below /docs (A22.1).
func markdownPath(page string) string { return cmp.Or(page, "/quickstart") + ".md" }

// addMarkdown adds the Markdown of a page.
func (s *site) addMarkdown(page, text string) {
	s.files[prefix+markdownPath(page)] = newFile(markdownType, []byte(text))
}

// linkOrFence matches a link, or a line that begins or ends a sample.
var linkOrFence = regexp.MustCompile("(?m)^ *```.*$|\\[((?:[^][`]|`[^`]*`)*)\\]\\(([^)\\s]+)\\)")

// linkMarkdown adds the Markdown of a page, in which links to pages lead to their Markdown.
func (s *site) linkMarkdown(l link, content string) error {
	var failed error
	sample, up := false, s.up(cmp.Or(l.Path, "/quickstart"))
	s.addMarkdown(l.Path, linkOrFence.ReplaceAllStringFunc(content, func(found string) string {
		parts := linkOrFence.FindStringSubmatch(found)
		if parts[2] == "" {
			sample = !sample
		}
		if sample || parts[2] == "" {
			return found
		}
		page, fragment, to, err := resolveLink(l.File, parts[2])
		failed = cmp.Or(failed, err)
		switch to {
		case toPage:
			return fmt.Sprintf("[%s](%s%s%s)", parts[1], up, markdownPath(page), fragment)
		case toUnserved:
			return parts[1]
		case toOther:
		}
		return found
	}))
	return failed
}

// addErrorMarkdown adds the codes to the Markdown of their index.
func (s *site) addErrorMarkdown() {
	var text strings.Builder
	text.Write(s.files[prefix+"/errors.md"].plain)
	text.WriteString("\n## Codes\n\n")
	for _, info := range roomsensor.Codes {
		fmt.Fprintf(&text, "- [`%s`](errors/%[1]s.md), %d: %s\n", info.Code, info.Status, info.Cause)
	}
	s.addMarkdown("/errors", text.String())
}

// list returns links to the Markdown of pages, as a list.
func (s *site) list(pages []link, up string) string {
	var text strings.Builder
	for _, l := range pages {
		fmt.Fprintf(&text, "- [%s](%s%s): %s\n", l.Text, up, markdownPath(l.Path), l.About)
	}
	return text.String()
}

// addIndexes adds llms.txt, which lists all pages, and llms-full.txt, which has the text of those for users (A22.1).
func (s *site) addIndexes() error {
	var index, full strings.Builder
	fmt.Fprintf(&index, "# roomsensor\n\n> %s\n", pages[0].About)
	for _, group := range sections {
		fmt.Fprintf(&index, "\n## %s\n\n%s", group.Title, s.list(group.Pages, s.options.localize(defaultDocsURL)))
		if group.ForOperators() {
			continue
		}
		for _, l := range group.Pages {
			full.Write(s.files[prefix+markdownPath(l.Path)].plain)
			full.WriteString("\n")
		}
	}
	s.files[prefix+"/llms.txt"] = newFile(plainType, []byte(index.String()))
	s.files[prefix+"/llms-full.txt"] = newFile(plainType, []byte(full.String()))
	return nil
}
