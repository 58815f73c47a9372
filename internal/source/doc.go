// Package source reads the messages of sources (A10): with the mapping of their source, and by the names that its team
// has for units. It does not use the database: workers and receivers read sources, aliases and installations.
//
//	mappings.go  Mappings: the mapping of a source, compiled once
//	message.go   Read: the readings of a message by unit, and what is not mapped
//	unit.go      Unit: the readings of a unit as an upload, resolved by its hardware id
package source
