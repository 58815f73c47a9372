// Package generators tests that generators make working clients of the API from its OpenAPI document.
//
// The test generates a client with oapi-codegen from the document in OpenAPI 3.0 that a service serves, compiles it,
// and calls every operation of that service. The program that calls is a module of its own in testdata, because
// generated code needs the runtime package of oapi-codegen, which the product does not.
package generators
