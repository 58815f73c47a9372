// Package docs holds what clients read: the OpenAPI documents, the guides and a
// page for each error code (decision 35). Everything is embedded; nothing on
// the pages is loaded from anywhere else.
package docs

import (
	"embed"
	"fmt"
	"net/http"
	"strings"
)

//go:generate go run ./gen

//go:embed openapi.yaml receiver.yaml errors.md guides web
var files embed.FS

// Options is what the pages need to know of the place they are served from.
type Options struct {
	PublicURL string // the API as clients reach it, without /v1
	DocsURL   string // these pages as clients reach them
}

// The addresses that stand in the files, as they are by default. The files can
// be read and tried as they lie in the repository; served, they name the real
// addresses.
const (
	writtenPublicURL = "http://127.0.0.1:8080"
	writtenDocsURL   = writtenPublicURL + "/docs"
)

// localize puts the addresses of a deployment into a text.
func (o Options) localize(text string) string {
	return strings.NewReplacer(
		writtenDocsURL, strings.TrimSuffix(o.DocsURL, "/"),
		writtenPublicURL, strings.TrimSuffix(o.PublicURL, "/"),
	).Replace(text)
}

// read returns an embedded file with the addresses of the deployment.
func (o Options) read(name string) (string, error) {
	text, err := files.ReadFile(name)
	if err != nil {
		return "", fmt.Errorf("reading an embedded file: %w", err)
	}
	return o.localize(string(text)), nil
}

// OpenAPI is the document of the API as it lies in the repository: its server is
// the default address.
func OpenAPI() []byte { return mustRead("openapi.yaml") }

// Receiver is the document of the receiver of uploads.
func Receiver() []byte { return mustRead("receiver.yaml") }

func mustRead(name string) []byte {
	text, err := files.ReadFile(name)
	if err != nil {
		panic(err) // The name is embedded above.
	}
	return text
}

// Handler serves /docs and what is below it; a path that is not there is a
// plain 404. It is meant for GET and HEAD: the router in front of it refuses
// other methods. All pages are made here, once: an error means that a file of
// this package is broken.
func Handler(o Options) (http.Handler, error) {
	s := &site{options: o, files: map[string]*file{}}
	for _, add := range []func() error{s.addAssets, s.addDocuments, s.addReferences, s.addGuides, s.addErrors} {
		if err := add(); err != nil {
			return nil, fmt.Errorf("building the docs pages: %w", err)
		}
	}
	return s, nil
}
