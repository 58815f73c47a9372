package api_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/openapitest"
)

// check is what the OpenAPI document says against a response; every response
// of these tests is held to it.
func (r response) check() error {
	return openapitest.API().Check(&openapitest.Answer{Request: r.request, Status: r.status, Header: r.header, Body: r.body})
}

// requireContract holds a response to what the document says of it.
func requireContract(t testing.TB, got response) {
	t.Helper()
	require.NoError(t, got.check())
}
