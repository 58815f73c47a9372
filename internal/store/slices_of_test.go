package store

import "roomsensor/internal/roomsensor"

// Slices are the windows in which the tests of this package see an export's rows asked for.
func (e *Export) Slices() []roomsensor.Window { return slicesOf(e.extent, e.rows) }

// SliceRows is how many rows a slice should have.
const SliceRows = sliceRows
