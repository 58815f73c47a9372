// Package minio tests archives in an object store against the server of MinIO, which it builds. It is a module of its
// own, because that server requires more than 300 modules; the product requires its client only. `go tool task lint`
// leaves it out, because it would compile all of them.
package minio
