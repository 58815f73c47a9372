package docs

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"

	"github.com/swaggest/swgui/v5/static"
)

// assets lists the files that pages load, by their path below /docs.
var assets = []struct {
	path, contentType string
	read              func() ([]byte, error)
}{
	{"/assets/style.css", "text/css; charset=utf-8", own("web/style.css")},
	{"/assets/reference.css", "text/css; charset=utf-8", own("web/reference.css")},
	{"/assets/reference.js", "text/javascript; charset=utf-8", own("web/reference.js")},
	{"/assets/icon.svg", "image/svg+xml", own("web/icon.svg")},
	{"/assets/swagger-ui.css", "text/css; charset=utf-8", viewers("swagger-ui.css.gz")},
	{"/assets/swagger-ui.js", "text/javascript; charset=utf-8", viewers("swagger-ui-bundle.js.gz")},
}

func (s *site) addAssets() error {
	for _, asset := range assets {
		body, err := asset.read()
		if err != nil {
			return err
		}
		s.files[prefix+asset.path] = newFile(asset.contentType, body)
	}
	return nil
}

func own(name string) func() ([]byte, error) {
	return func() ([]byte, error) { return files.ReadFile(name) }
}

// viewers reads a file of the viewer, Swagger UI, which comes compressed.
func viewers(name string) func() ([]byte, error) {
	return func() ([]byte, error) {
		packed, err := static.FS.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("reading the viewer: %w", err)
		}
		r, err := gzip.NewReader(bytes.NewReader(packed))
		if err != nil {
			return nil, fmt.Errorf("unpacking the viewer: %w", err)
		}
		body, err := io.ReadAll(r)
		if err != nil {
			return nil, fmt.Errorf("unpacking the viewer: %w", err)
		}
		return body, nil
	}
}
