// Package roomsensor embeds the files outside of its packages that the program contains.
package roomsensor

import _ "embed"

// Changelog is CHANGELOG.md, which the docs pages show.
//
//go:embed CHANGELOG.md
var Changelog string

// PythonClient is clients/python/roomsensor.py, which the docs pages serve.
//
//go:embed clients/python/roomsensor.py
var PythonClient string
