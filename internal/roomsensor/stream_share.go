package roomsensor

import "github.com/google/uuid"

// StreamShare is an upload in the stream that stands for a number of bytes of uploads of its team before it: the stored
// uploads of each worker are counted, and each time that they reach a number of bytes, the upload becomes a share. All
// shares of a team together estimate what it has in the stream.
type StreamShare struct {
	Sequence uint64
	Team     uuid.UUID // uuid.Nil for uploads without a team
	Bytes    int64
}
