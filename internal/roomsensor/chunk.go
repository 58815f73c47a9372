package roomsensor

// Chunk is a part of the readings on disk, of the buckets in Range.
type Chunk struct {
	Name  string
	Range Window
	Bytes int64
}
