package api

import (
	"sync"

	"roomsensor/internal/compress"
)

// document is a JSON body that many requests are answered with: its tag is made
// once, and so is each of its codings.
type document struct {
	body []byte
	tag  string

	mu    sync.Mutex
	coded map[compress.Coding][]byte
}

func newDocument(body []byte) *document {
	return &document{body: body, tag: entityTag(body), coded: map[compress.Coding][]byte{compress.Identity: body}}
}

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
