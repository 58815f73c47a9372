package mapping

import (
	"embed"
	"io/fs"
	"strings"
	"sync"
)

// Format is a mapping that the service ships (A11.1).
type Format struct {
	*Mapping

	Name string
	Text []byte // the JSON document; must not be changed
}

// Title is what the format reads, in a few words.
func (f Format) Title() string { return f.Description[:strings.IndexAny(f.Description, ":.")] }

//go:embed formats/*.json
var formatFiles embed.FS

// formats are the formats by name, in ascending order.
var formats = sync.OnceValue(func() []Format {
	files, err := fs.Glob(formatFiles, "formats/*.json")
	if err != nil {
		panic("listing formats: " + err.Error()) // The pattern is wrong.
	}
	all := make([]Format, 0, len(files))
	for _, file := range files {
		text, err := formatFiles.ReadFile(file)
		if err != nil {
			panic("reading a format: " + err.Error()) // The binary is damaged.
		}
		m, err := Parse(text)
		if err != nil {
			panic("parsing " + file + ": " + err.Error()) // TestFormats parses all.
		}
		name := strings.TrimSuffix(strings.TrimPrefix(file, "formats/"), ".json")
		all = append(all, Format{m, name, text})
	}
	return all
})

// Formats returns all formats by name, in ascending order.
func Formats() []Format { return append([]Format(nil), formats()...) }

// FormatNamed returns the format with a name.
func FormatNamed(name string) (Format, bool) {
	for _, f := range formats() {
		if f.Name == name {
			return f, true
		}
	}
	return Format{}, false
}
