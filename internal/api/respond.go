package api

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"

	"roomsensor/internal/compress"
	"roomsensor/internal/httpedge"
)

// bodyBuffers are reused between requests: a page of 1,000 readings takes about 150 KB.
var bodyBuffers = sync.Pool{New: func() any { return new([]byte) }}

// maxPooledBuffer is the capacity beyond which a buffer is not reused.
const maxPooledBuffer = 4 << 20

func getBuffer() *[]byte {
	buffer := bodyBuffers.Get().(*[]byte) //nolint:forcetypeassert // The pool holds nothing else.
	*buffer = (*buffer)[:0]
	return buffer
}

func putBuffer(buffer *[]byte) {
	if cap(*buffer) <= maxPooledBuffer {
		bodyBuffers.Put(buffer)
	}
}

// document is a JSON body that answers many requests: its entity tag and each of its codings are computed once.
type document struct {
	body []byte
	tag  string

	mu    sync.Mutex
	coded map[compress.Coding][]byte
}

func newDocument(body []byte) *document {
	return &document{body: body, tag: entityTag(body), coded: map[compress.Coding][]byte{compress.Identity: body}}
}

// in returns the body in a coding.
func (d *document) in(coding compress.Coding) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if body, ok := d.coded[coding]; ok {
		return body, nil
	}
	body, err := compress.Append(nil, d.body, coding)
	if err == nil {
		d.coded[coding] = body
	}
	return body, err
}

// writeObject answers a GET or HEAD with 200 and a JSON object.
func (c *call) writeObject(body []byte) error {
	return c.writeIfChanged(body, compress.Identity)
}

// writeList answers a GET or HEAD with 200 and a JSON list, compressed if the client accepts it (decision 33).
func (c *call) writeList(body []byte) error { return c.writeIfChanged(body, c.chooseCoding()) }

// writeDocument is writeList for a prepared body. A slow client may still read it when newer ones have replaced it, so
// that every request reserves its bytes.
func (s *server) writeDocument(ctx context.Context, c *call, d *document) error {
	coding := c.chooseCoding()
	if c.notModified(d.tag) {
		return nil
	}
	body, err := d.in(coding)
	if err != nil {
		return err
	}
	share, err := s.bodies.reserve(ctx, c.key.TeamID, len(body))
	if err != nil {
		return err
	}
	defer share.release()
	return c.writeCoded(body, coding)
}

// chooseCoding returns the content coding that the client prefers and sets Vary.
func (c *call) chooseCoding() compress.Coding {
	c.setHeader("Vary", "Accept-Encoding")
	return compress.Choose(c.Request().Header.Values("Accept-Encoding"))
}

// writeIfChanged sends a body, or 304 if the client has it already.
func (c *call) writeIfChanged(body []byte, coding compress.Coding) error {
	if c.notModified(entityTag(body)) {
		return nil
	}
	if coding == compress.Identity {
		return c.writeCoded(body, coding)
	}
	buffer := getBuffer()
	defer putBuffer(buffer)
	compressed, err := compress.Append(*buffer, body, coding)
	if err != nil {
		return err
	}
	*buffer = compressed
	return c.writeCoded(compressed, coding)
}

// notModified sends 304 and returns true if the client has the body with a tag already (decision 42). The tag is weak
// because it belongs to the body before compression.
func (c *call) notModified(tag string) bool {
	c.setHeader("ETag", tag)
	c.setHeader("Cache-Control", "private, no-cache")
	if !matches(c.Request().Header.Values("If-None-Match"), tag) {
		return false
	}
	c.Response().WriteHeader(http.StatusNotModified)
	return true
}

func (c *call) writeCoded(body []byte, coding compress.Coding) error {
	c.setHeader("Content-Type", httpedge.ContentType)
	if coding != compress.Identity {
		c.setHeader("Content-Encoding", string(coding))
	}
	return c.writeBody(http.StatusOK, body)
}

// minSendRate is the lowest average rate, in bytes per second, at which a client may read a body after the first
// StallTimeout. One that reads a byte from time to time would otherwise keep the body in memory for days.
const minSendRate = 1 << 10

// writeBody sends a status and a whole body; in answer to HEAD, the length of the body only. It fails if the client
// does not read the body, or reads it too slowly.
func (c *call) writeBody(status int, body []byte) error {
	c.setHeader("Content-Length", strconv.Itoa(len(body)))
	c.Response().WriteHeader(status)
	if c.Request().Method == http.MethodHead {
		return nil
	}
	connection := http.NewResponseController(c.Response())
	inTime := httpedge.StallTimeout + time.Duration(len(body))*time.Second/minSendRate
	_ = connection.SetWriteDeadline(time.Now().Add(inTime)) // In a test there may be no connection.
	defer func() { _ = connection.SetWriteDeadline(time.Time{}) }()
	if _, err := c.Response().Write(body); err != nil {
		return fmt.Errorf("sending a response: %w", err)
	}
	return nil
}

// entityTag returns a weak tag that is the same on every replica. Two bodies with the same tag would help no attacker,
// so a fast hash is enough; a cryptographic one took a quarter of the CPU time of a page.
func entityTag(body []byte) string {
	return `W/"` + strconv.FormatUint(xxhash.Sum64(body), 36) + `"`
}

// matches compares a tag weakly with the lines of an If-None-Match header (RFC 9110, section 13.1.2).
func matches(lines []string, tag string) bool {
	opaque := strings.TrimPrefix(tag, "W/")
	for _, line := range lines {
		for candidate := range strings.SplitSeq(line, ",") {
			candidate = strings.TrimSpace(candidate)
			if candidate == "*" || strings.TrimPrefix(candidate, "W/") == opaque {
				return true
			}
		}
	}
	return false
}
