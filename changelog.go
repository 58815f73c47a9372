// Package roomsensor embeds the files of the root directory that the program contains.
package roomsensor

import _ "embed"

// Changelog is CHANGELOG.md, which the docs pages show.
//
//go:embed CHANGELOG.md
var Changelog string
