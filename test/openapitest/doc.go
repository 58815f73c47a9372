// Package openapitest compares the responses of a service with its OpenAPI document. Only tests use it.
//
//   - document.go reads the documents of the API and of the receiver and finds the operation of a request.
//   - check.go checks one response: status, headers, body, error envelope and the row count of an export.
//   - schema.go compiles the schemas of a document and compares headers and bodies with them.
//   - transport.go checks every response that an HTTP client receives.
package openapitest
