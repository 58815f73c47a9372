// Package timezone loads time zones from a copy of the IANA database in the binary, so that the edges of local days are
// the same on every machine.
//
//	timezone.go   Load, Find, Names
//	zoneinfo.zip  the database, as distributed with Go
package timezone

import (
	"archive/zip"
	"bytes"
	_ "embed"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

//go:generate cp $GOROOT/lib/time/zoneinfo.zip .

//go:embed zoneinfo.zip
var database []byte

// files returns the files of the database by the names of their zones.
var files = sync.OnceValue(func() map[string]*zip.File {
	archive, err := zip.NewReader(bytes.NewReader(database), int64(len(database)))
	if err != nil {
		panic("reading the time zones: " + err.Error()) // The binary is damaged.
	}
	byName := make(map[string]*zip.File, len(archive.File))
	for _, file := range archive.File {
		byName[file.Name] = file
	}
	return byName
})

// Load returns the zone with an IANA name in its exact letter case, such as Europe/Berlin. time.LoadLocation would also
// accept Local, the empty name, other files of the machine and, on some machines, other letter cases.
func Load(name string) (*time.Location, bool) {
	file, ok := files()[name]
	if !ok {
		return nil, false
	}
	data, err := read(file)
	if err != nil {
		return nil, false
	}
	zone, err := time.LoadLocationFromTZData(name, data)
	return zone, err == nil
}

// Find returns the zone with an IANA name, or else the only one of a city, in any letter case: "new york" is
// America/New_York.
func Find(text string) (*time.Location, bool) {
	if zone, ok := Load(text); ok {
		return zone, true
	}
	city, found := "/"+strings.ReplaceAll(strings.TrimSpace(text), " ", "_"), ""
	for _, name := range Names() {
		if len(name) > len(city) && strings.EqualFold(name[len(name)-len(city):], city) {
			if found != "" {
				return nil, false
			}
			found = name
		}
	}
	return Load(found)
}

func read(file *zip.File) ([]byte, error) {
	r, err := file.Open()
	if err != nil {
		return nil, err //nolint:wrapcheck // Load ignores the text.
	}
	defer func() { _ = r.Close() }()
	return io.ReadAll(r) //nolint:wrapcheck // Load ignores the text.
}

// Names returns the names of all zones, in ascending order.
func Names() []string { return slices.Sorted(maps.Keys(files())) }
