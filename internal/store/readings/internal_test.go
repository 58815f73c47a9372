package readings

import "roomsensor/internal/roomsensor"

// Slices returns the windows in which an export is read.
func Slices(opened roomsensor.ReadingExport) []roomsensor.Window {
	e := opened.(*Export)
	return slicesOf(e.extent, e.rows, e.store.Limits.SliceRows)
}
