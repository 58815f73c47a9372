// Package source reads the messages of sources (A10): with the mapping of their source, and by the names that its team
// has for units. Its callers pass the tables of the database.
//
//	mappings.go  Mappings: the mapping of a source, compiled once
//	message.go   Read: the readings of a message by unit, and what is not mapped
//	unit.go      Unit: the readings of a unit as an upload
//	search.go    Search: what the database knows about the units of uploads and messages
//	preview.go   Preview: what a worker would make of a message, which is not stored
package source
