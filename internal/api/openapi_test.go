package api_test

import (
	"bytes"
	"fmt"

	"roomsensor/internal/canary"
	"roomsensor/internal/openapitest"
)

// check is what the OpenAPI document says against a response; every response
// of these tests is held to it, and to showing no secret of a key.
func (r response) check() error {
	if said := canary.Keys(r.text()); len(said) > 0 {
		return fmt.Errorf("%d to %s shows a secret", r.status, r.request.URL.Path)
	}
	return openapitest.API().Check(&openapitest.Answer{Request: r.request, Status: r.status, Header: r.header, Body: r.body})
}

// text is all of a response, as it is on the wire.
func (r response) text() []byte {
	var text bytes.Buffer
	_ = r.header.Write(&text) // Into memory.
	_, _ = text.Write(r.body)
	return text.Bytes()
}
