package httpedge

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"

	"roomsensor/internal/compress"
)

// policy is the Content-Security-Policy of every response but pages: a browser that shows one loads and runs nothing.
const policy = "default-src 'none'; base-uri 'none'; frame-ancestors 'none'"

// SetSecurityHeaders sets the headers of a response that is not a page.
func SetSecurityHeaders(h http.Header) {
	h.Set("X-Content-Type-Options", "nosniff") // A browser must not take a tag in a body for HTML.
	h.Set("Content-Security-Policy", policy)
}

// bodyBuffers are reused between requests: a page of 1,000 readings takes about 150 KB.
var bodyBuffers = sync.Pool{New: func() any { return new([]byte) }}

// maxPooledBuffer is the capacity beyond which a buffer is not reused.
const maxPooledBuffer = 4 << 20

// GetBuffer returns an empty buffer for a body. The caller gives it back with PutBuffer.
func GetBuffer() *[]byte {
	buffer := bodyBuffers.Get().(*[]byte) //nolint:forcetypeassert // The pool holds nothing else.
	*buffer = (*buffer)[:0]
	return buffer
}

// PutBuffer gives a buffer back.
func PutBuffer(buffer *[]byte) {
	if cap(*buffer) <= maxPooledBuffer {
		bodyBuffers.Put(buffer)
	}
}

// WriteObject answers a GET or HEAD with 200 and a JSON object, or with 304 (decision 42).
func WriteObject(w http.ResponseWriter, r *http.Request, body []byte) error {
	return writeIfChanged(w, r, body, EntityTag(body), compress.Identity)
}

// WritePage answers a GET or HEAD with 200 and a page, after its End, compressed if the client accepts it (decision
// 33), or with 304 (decision 42).
func WritePage(w http.ResponseWriter, r *http.Request, p *Page) error {
	return writeIfChanged(w, r, p.Body, p.tag, ChooseCoding(w, r))
}

// AcceptEncoding is the header on which the coding of a response depends.
const AcceptEncoding = "Accept-Encoding"

// ChooseCoding returns the content coding that the client prefers, and adds the header to Vary.
func ChooseCoding(w http.ResponseWriter, r *http.Request) compress.Coding {
	w.Header().Add("Vary", AcceptEncoding)
	return compress.Choose(r.Header.Values(AcceptEncoding))
}

// writeIfChanged sends a body, or 304 if the client has it already.
func writeIfChanged(w http.ResponseWriter, r *http.Request, body []byte, tag string, coding compress.Coding) error {
	if NotModified(w, r, tag) {
		return nil
	}
	return WriteCompressed(w, r, http.StatusOK, body, coding)
}

// WriteCompressed answers with a status and a body that it compresses.
func WriteCompressed(w http.ResponseWriter, r *http.Request, status int, body []byte, coding compress.Coding) error {
	if coding == compress.Identity {
		return WriteCoded(w, r, status, body, coding)
	}
	buffer := GetBuffer()
	defer PutBuffer(buffer)
	compressed, err := compress.Append(*buffer, body, coding)
	if err != nil {
		return err
	}
	*buffer = compressed
	return WriteCoded(w, r, status, compressed, coding)
}

// NotModified sends 304 and returns true if the client has the body with a tag already (decision 42). The tag is weak
// because it belongs to the body before compression.
func NotModified(w http.ResponseWriter, r *http.Request, tag string) bool {
	w.Header().Set("ETag", tag)
	w.Header().Set("Cache-Control", "private, no-cache")
	if !HasTag(r, tag) {
		return false
	}
	w.WriteHeader(http.StatusNotModified)
	return true
}

// WriteText answers a GET or HEAD with 200 and a text of another type than JSON, compressed if the client accepts it
// (decision 33), or with 304 (decision 42).
func WriteText(w http.ResponseWriter, r *http.Request, contentType string, body []byte) error {
	w.Header().Set("Content-Type", contentType)
	return writeIfChanged(w, r, body, EntityTag(body), ChooseCoding(w, r))
}

// WriteCoded answers with a status and a body in a coding. It is JSON, unless the header says otherwise.
func WriteCoded(w http.ResponseWriter, r *http.Request, status int, body []byte, coding compress.Coding) error {
	if w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", ContentType)
	}
	if coding != compress.Identity {
		w.Header().Set("Content-Encoding", string(coding))
	}
	return WriteBody(w, r, status, body)
}

// minSendRate is the lowest average rate, in bytes per second, at which a client may read a body after the first
// StallTimeout. One that reads a byte from time to time would otherwise keep the body in memory for days.
const minSendRate = 1 << 10

// WriteBody sends a status and a whole body; in answer to HEAD, the length of the body only. It fails if the client
// does not read the body, or reads it too slowly.
func WriteBody(w http.ResponseWriter, r *http.Request, status int, body []byte) error {
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	if r.Method == http.MethodHead {
		return nil
	}
	connection := http.NewResponseController(w)
	inTime := StallTimeout + time.Duration(len(body))*time.Second/minSendRate
	_ = connection.SetWriteDeadline(time.Now().Add(inTime)) // In a test there may be no connection.
	defer func() { _ = connection.SetWriteDeadline(time.Time{}) }()
	if _, err := w.Write(body); err != nil { //nolint:gosec // JSON, sent with nosniff.
		return fmt.Errorf("sending a response: %w", err)
	}
	return nil
}

// EntityTag returns a weak tag of the parts of a representation. It is the same on every replica. Two bodies with the
// same tag would help no attacker, so a fast hash is enough; a cryptographic one took a quarter of the CPU time of a
// page.
func EntityTag(parts ...[]byte) string {
	hash := xxhash.New()
	for _, part := range parts {
		_, _ = hash.Write(part) // It does not fail.
	}
	return `W/"` + strconv.FormatUint(hash.Sum64(), 36) + `"`
}

// HasTag compares a tag weakly with those of a client, the lines of If-None-Match (RFC 9110, section 13.1.2).
func HasTag(r *http.Request, tag string) bool {
	opaque := strings.TrimPrefix(tag, "W/")
	for _, line := range r.Header.Values("If-None-Match") {
		for candidate := range strings.SplitSeq(line, ",") {
			candidate = strings.TrimSpace(candidate)
			if candidate == "*" || strings.TrimPrefix(candidate, "W/") == opaque {
				return true
			}
		}
	}
	return false
}
