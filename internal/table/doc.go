// Package table renders the objects that commands print as text for people. It follows their struct tags: the tag json
// names a field, as in the JSON of the same object, and `table:"-"` leaves it out of lists.
package table
