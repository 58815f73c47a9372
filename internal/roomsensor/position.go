package roomsensor

import "context"

// Position is a position in the write-ahead log of the primary database. A server that has replayed the log up to it
// has everything that was committed before it. Positions of different systems or timelines cannot be compared: they
// belong to different histories.
type Position struct {
	System   int64 // identifier of the database, which a standby shares with its primary
	Timeline int32 // number that a promotion increments
	Log      int64 // bytes of the log
}

// Later returns the later of two positions. It returns the zero Position if they cannot be compared.
func (p Position) Later(other Position) Position {
	switch {
	case p.System != other.System || p.Timeline != other.Timeline:
		return Position{}
	case other.Log > p.Log:
		return other
	}
	return p
}

// positionKey is the key of the position in a context.
type positionKey struct{}

// WithPosition returns a context whose reads must include everything that was committed before a position. They may run
// on a standby that has replayed it. With the zero Position, and without any, they run on the primary.
func WithPosition(ctx context.Context, p Position) context.Context {
	return context.WithValue(ctx, positionKey{}, p)
}

// PositionOf returns the position of a context, or the zero Position.
func PositionOf(ctx context.Context) Position {
	p, _ := ctx.Value(positionKey{}).(Position)
	return p
}
