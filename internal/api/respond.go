package api

import (
	"context"
	"net/http"
	"sync"

	"roomsensor/internal/compress"
	"roomsensor/internal/httpedge"
)

// document is a JSON body that answers many requests: its entity tag and each of its codings are computed once.
type document struct {
	body []byte
	tag  string

	mu    sync.Mutex
	coded map[compress.Coding][]byte
}

func newDocument(body []byte) *document {
	return &document{body: body, tag: httpedge.EntityTag(body), coded: map[compress.Coding][]byte{compress.Identity: body}}
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
	return httpedge.WriteObject(c.Response(), c.Request(), body)
}

// writeBody sends a status and a whole body; in answer to HEAD, the length of the body only.
func (c *call) writeBody(status int, body []byte) error {
	return httpedge.WriteBody(c.Response(), c.Request(), status, body)
}

// writeDocument sends a prepared body, or 304 if the client has it already. A slow client may still read it when newer
// ones have replaced it, so that every request reserves its bytes.
func (s *server) writeDocument(ctx context.Context, c *call, d *document) error {
	coding := httpedge.ChooseCoding(c.Response(), c.Request())
	if httpedge.NotModified(c.Response(), c.Request(), d.tag) {
		return nil
	}
	body, err := d.in(coding)
	if err != nil {
		return err
	}
	share, err := reserve(ctx, s.bodies, c.key.TeamID, len(body), shareWait)
	if err != nil {
		return err
	}
	defer share.Release()
	return httpedge.WriteCoded(c.Response(), c.Request(), http.StatusOK, body, coding)
}
