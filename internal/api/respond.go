package api

import (
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/cespare/xxhash/v2"

	"roomsensor/internal/compress"
)

const jsonType = "application/json; charset=utf-8"

// bodyBuffers are reused between requests: a page of 1,000 readings takes some
// 150 KB. A buffer that grew beyond mostKept is given up.
var bodyBuffers = sync.Pool{New: func() any { return new([]byte) }}

const mostKept = 4 << 20

func getBuffer() *[]byte {
	buffer := bodyBuffers.Get().(*[]byte) //nolint:forcetypeassert // The pool holds nothing else.
	*buffer = (*buffer)[:0]
	return buffer
}

func putBuffer(buffer *[]byte) {
	if cap(*buffer) <= mostKept {
		bodyBuffers.Put(buffer)
	}
}

// writeObject answers 200 with a JSON body to a GET or HEAD.
func (c *call) writeObject(body []byte) error {
	return c.writeFresh(body, compress.Identity)
}

// writeList answers 200 with a JSON list, compressed where the client takes it
// (decision 33).
func (c *call) writeList(body []byte) error { return c.writeFresh(body, c.coding()) }

// writeDocument is writeList of a body that was prepared.
func (c *call) writeDocument(d *document) error {
	coding := c.coding()
	if c.unchanged(d.tag) {
		return nil
	}
	body, err := d.in(coding)
	if err != nil {
		return err
	}
	c.writeCoded(body, coding)
	return nil
}

// coding chooses how a list is compressed, and says that it was chosen.
func (c *call) coding() compress.Coding {
	c.setHeader("Vary", "Accept-Encoding")
	return compress.Choose(c.Request().Header.Values("Accept-Encoding"))
}

// writeFresh answers with a body, or with 304 where the client has it already.
func (c *call) writeFresh(body []byte, coding compress.Coding) error {
	if c.unchanged(entityTag(body)) {
		return nil
	}
	if coding == compress.Identity {
		c.writeCoded(body, coding)
		return nil
	}
	buffer := getBuffer()
	defer putBuffer(buffer)
	compressed, err := compress.Append(*buffer, body, coding)
	if err != nil {
		return err
	}
	*buffer = compressed
	c.writeCoded(compressed, coding)
	return nil
}

// unchanged answers 304 where the client has the body already (decision 42).
// The ETag is of the body before compression, which is why it is weak.
func (c *call) unchanged(tag string) bool {
	c.setHeader("ETag", tag)
	c.setHeader("Cache-Control", "private, no-cache")
	if !matches(c.Request().Header.Values("If-None-Match"), tag) {
		return false
	}
	c.Response().WriteHeader(http.StatusNotModified)
	return true
}

func (c *call) writeCoded(body []byte, coding compress.Coding) {
	c.setHeader("Content-Type", jsonType)
	if coding != compress.Identity {
		c.setHeader("Content-Encoding", string(coding))
	}
	c.writeBody(http.StatusOK, body)
}

// writeBody sends a whole body; to HEAD its length alone. A client that does
// not take it is gone, and there is nobody to tell.
func (c *call) writeBody(status int, body []byte) {
	c.setHeader("Content-Length", strconv.Itoa(len(body)))
	c.Response().WriteHeader(status)
	if c.Request().Method == http.MethodHead {
		return
	}
	if _, err := c.Response().Write(body); err != nil {
		breakConnection(c)
	}
}

// entityTag is weak and the same on every replica. Nobody gains by two bodies
// with one tag, so the hash need not be one that resists attacks, which took a
// quarter of the processor's time for a page.
func entityTag(body []byte) string {
	return `W/"` + strconv.FormatUint(xxhash.Sum64(body), 36) + `"`
}

// matches compares weakly with the lines of an If-None-Match header (RFC 9110, 13.1.2).
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
