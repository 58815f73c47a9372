package docs

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/swaggest/swgui/v5/static"

	"roomsensor"
)

const (
	cssType        = "text/css; charset=utf-8"
	htmlType       = "text/html; charset=utf-8"
	javaScriptType = "text/javascript; charset=utf-8"
)

// file is one file that the site serves, in both codings.
type file struct {
	contentType string
	policy      string // Content-Security-Policy of a page; empty for other files
	etag        string // weak, because both codings share it (decision 42 b)
	plain       []byte
	gzipped     func() []byte // nil if the file is not compressed
}

// newFile returns a file that is compressed once, when the first client needs that: files never change while the
// process runs, and most processes never serve most of them.
func newFile(contentType string, body []byte) *file {
	return packedFile(contentType, body, sync.OnceValue(func() []byte {
		var small bytes.Buffer
		w := gzip.NewWriter(&small)
		_, _ = w.Write(body) // Writing to memory cannot fail.
		_ = w.Close()
		return small.Bytes()
	}))
}

// packedFile returns a file with its gzip coding.
func packedFile(contentType string, body []byte, gzipped func() []byte) *file {
	sum := sha256.Sum256(body)
	etag := fmt.Sprintf("W/%q", hex.EncodeToString(sum[:16]))
	return &file{contentType: contentType, etag: etag, plain: body, gzipped: gzipped}
}

// at returns the file with the base URL of a client's API instead of the default one, which it contains. It does not
// compress the result: the host of a request must not cost more than a copy.
func (f *file) at(publicURL string) *file {
	if publicURL == defaultPublicURL || !bytes.Contains(f.plain, []byte(defaultPublicURL)) {
		return f
	}
	local := packedFile(f.contentType, bytes.ReplaceAll(f.plain, []byte(defaultPublicURL), []byte(publicURL)), nil)
	local.policy = f.policy
	return local
}

// serve answers GET and HEAD, conditional requests included. Browsers store a file but revalidate it on every use, so
// that an upgrade of the service shows at once.
func (f *file) serve(w http.ResponseWriter, r *http.Request) {
	chosen := f.choose(w.Header(), r)
	w.Header().Set("Etag", f.etag)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(chosen))
}

// serveStatus answers GET and HEAD with a status other than 200.
func (f *file) serveStatus(w http.ResponseWriter, r *http.Request, status int) {
	chosen := f.choose(w.Header(), r)
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(chosen) // A client that went offline needs no page.
	}
}

// choose sets the headers of the file, and returns it in a coding that the client accepts.
func (f *file) choose(h http.Header, r *http.Request) []byte {
	chosen := f.plain
	if f.gzipped != nil && acceptsGzip(r.Header.Values("Accept-Encoding")) {
		chosen = f.gzipped()
		h.Set("Content-Encoding", "gzip")
	}
	h.Set("Vary", "Accept-Encoding")
	h.Set("Content-Type", f.contentType)
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	if f.policy != "" {
		h.Set("Content-Security-Policy", f.policy)
	}
	return chosen
}

// acceptsGzip reports whether an Accept-Encoding names gzip without q=0.
func acceptsGzip(accepted []string) bool {
	for coding := range strings.SplitSeq(strings.Join(accepted, ","), ",") {
		name, weight, _ := strings.Cut(strings.ToLower(coding), ";")
		if strings.TrimSpace(name) != "gzip" {
			continue
		}
		weight = strings.TrimSpace(weight)
		return !strings.HasPrefix(weight, "q=") || strings.Trim(weight, "q=0.") != ""
	}
	return false
}

// addAssets adds the Python client, and style sheets, scripts and images of the pages and of the viewer, Swagger UI.
func (s *site) addAssets() error {
	python := []byte(s.options.localize(roomsensor.PythonClient))
	s.files[prefix+"/roomsensor.py"] = newFile("text/x-python; charset=utf-8", python)
	for served, contentType := range map[string]string{
		"/docs/assets/style.css": cssType, "/docs/assets/reference.css": cssType, "/docs/assets/reference.js": javaScriptType,
		"/docs/assets/page.js": javaScriptType, "/docs/assets/fill.js": javaScriptType,
		"/docs/assets/samples.js": javaScriptType, "/docs/assets/search.js": javaScriptType,
		"/docs/assets/icon.svg": "image/svg+xml", "/favicon.ico": "image/x-icon", "/robots.txt": "text/plain; charset=utf-8",
	} {
		body, err := files.ReadFile("web/" + path.Base(served))
		if err != nil {
			return fmt.Errorf("reading an embedded file: %w", err)
		}
		s.files[served] = newFile(contentType, body)
	}
	if err := s.addViewer("/swagger-ui.css", cssType, "swagger-ui.css.gz"); err != nil {
		return err
	}
	return s.addViewer("/swagger-ui.js", javaScriptType, "swagger-ui-bundle.js.gz")
}

// addViewer adds a file of the viewer, which its module embeds gzipped.
func (s *site) addViewer(served, contentType, name string) error {
	packed, err := static.FS.ReadFile(name)
	if err != nil {
		return fmt.Errorf("reading the viewer: %w", err)
	}
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return fmt.Errorf("decompressing the viewer: %w", err)
	}
	body, err := io.ReadAll(r)
	if err != nil {
		return fmt.Errorf("decompressing the viewer: %w", err)
	}
	s.files[prefix+"/assets"+served] = packedFile(contentType, body, func() []byte { return packed })
	return nil
}
