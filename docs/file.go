package docs

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// file is something that the site serves, in its two codings.
type file struct {
	contentType string
	policy      string // Content-Security-Policy of a page; empty on other files
	etag        string // weak, as it is the same in both codings (decision 42)
	plain       []byte
	gzipped     []byte
}

// newFile compresses a body ahead: pages never change while the process runs.
func newFile(contentType string, body []byte) *file {
	var small bytes.Buffer
	w := gzip.NewWriter(&small)
	_, _ = w.Write(body) // Writing to memory cannot fail.
	_ = w.Close()
	return packedFile(contentType, body, small.Bytes())
}

func packedFile(contentType string, body, gzipped []byte) *file {
	sum := sha256.Sum256(body)
	etag := fmt.Sprintf("W/%q", hex.EncodeToString(sum[:16]))
	return &file{contentType: contentType, etag: etag, plain: body, gzipped: gzipped}
}

// serve answers GET and HEAD, conditional ones too. Browsers keep a page but
// ask each time whether it still holds, so that an upgrade shows at once.
func (f *file) serve(w http.ResponseWriter, r *http.Request) {
	chosen := f.plain
	h := w.Header()
	if takesGzip(r.Header.Values("Accept-Encoding")) {
		chosen = f.gzipped
		h.Set("Content-Encoding", "gzip")
	}
	h.Set("Vary", "Accept-Encoding")
	h.Set("Content-Type", f.contentType)
	h.Set("Cache-Control", "no-cache")
	h.Set("Etag", f.etag)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	if f.policy != "" {
		h.Set("Content-Security-Policy", f.policy)
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(chosen))
}

// takesGzip reports whether gzip is named and not refused by q=0.
func takesGzip(accepted []string) bool {
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
