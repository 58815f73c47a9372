package docs

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"

	"github.com/swaggest/swgui/v5/static"
)

const (
	cssType        = "text/css; charset=utf-8"
	javaScriptType = "text/javascript; charset=utf-8"
)

// addAssets serves the files that pages load: the site's own and those of the
// viewer, Swagger UI.
func (s *site) addAssets() error {
	for path, contentType := range map[string]string{
		"/style.css": cssType, "/reference.css": cssType, "/reference.js": javaScriptType, "/icon.svg": "image/svg+xml",
	} {
		body, err := files.ReadFile("web" + path)
		if err != nil {
			return fmt.Errorf("reading an embedded file: %w", err)
		}
		s.files[prefix+"/assets"+path] = newFile(contentType, body)
	}
	if err := s.addViewer("/swagger-ui.css", cssType, "swagger-ui.css.gz"); err != nil {
		return err
	}
	return s.addViewer("/swagger-ui.js", javaScriptType, "swagger-ui-bundle.js.gz")
}

// addViewer serves a file of the viewer, which comes compressed.
func (s *site) addViewer(path, contentType, name string) error {
	packed, err := static.FS.ReadFile(name)
	if err != nil {
		return fmt.Errorf("reading the viewer: %w", err)
	}
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return fmt.Errorf("unpacking the viewer: %w", err)
	}
	body, err := io.ReadAll(r)
	if err != nil {
		return fmt.Errorf("unpacking the viewer: %w", err)
	}
	s.files[prefix+"/assets"+path] = packedFile(contentType, body, packed)
	return nil
}
