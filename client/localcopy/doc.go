// Package localcopy keeps a complete copy of a team's readings in a local store, and follows its changes.
//
// The first Run remembers a position in the change feed, loads all readings with exports, and then follows the feed
// from that position: late readings and corrections arrive too. The store commits the changes and the position after
// them in one step, so that the copy is exact whenever and however the program ends: it has each change up to its
// position, and none twice. Run it again to continue.
//
//	copy.go     Run: loads, then follows
//	load.go     the first load, from CSV exports
//	lists.go    the devices and assignments
//	store.go    what a store must do
//	sqlite/     a SQLite file
//	parquet/    a directory of Parquet files
//
// Ranges of readings that an operator deletes leave the copy. Readings of a device that was deleted stay, and so do
// those that the service drops because of their age: the feed does not report that. The devices and the assignments are
// replaced as a whole: when the copy has caught up, after its readings, and then every hour. So deleted ones leave the
// copy, and so do the names of people who were erased.
package localcopy
