package config

import (
	"time"
)

// Stream configures the stream of uploads. Its smallest size is that of a few uploads of the maximum size.
type Stream struct {
	StreamReplicas int  `default:"1"    help:"Copies of the stream: 1, or 3 or 5 in a cluster." placeholder:"N" setting:""`
	StreamMaxBytes Size `default:"8GiB" help:"Size at which the stream accepts no more uploads." placeholder:"SIZE" setting:"" min:"16MiB"`
}

// Retention configures how long the stream keeps uploads that are stored in the tables.
type Retention struct {
	StreamKeep Duration `default:"7d" help:"How long stored uploads stay in the stream, for a replay after a restore." placeholder:"DURATION" setting:"" min:"1m"`
}

// Validate checks the limits of the values.
func (c *Stream) Validate() error {
	if c.StreamReplicas != 1 && c.StreamReplicas != 3 && c.StreamReplicas != 5 {
		return &ValueError{Flag: "stream-replicas", Reason: "must be 1, 3 or 5"}
	}
	return validate(c)
}

// Validate checks the limit of the value.
func (c *Retention) Validate() error { return validate(c) }

// Uploads limits what a receiver takes. The least memory has room for two requests of the largest size.
type Uploads struct {
	UploadMemory            Size `default:"128MiB" help:"Memory of a receiver for requests; at most a quarter of what the process may use." placeholder:"SIZE" setting:"" min:"64MiB"`
	UploadRequestsPerSecond int  `default:"50"     help:"Requests per second of an upload credential at each receiver; twice as many of its team. Raise it for a credential that many devices share." placeholder:"N" setting:"" positive:""`
	UploadBytesPerSecond    Size `default:"2MiB"   help:"Decompressed bytes per second of an upload credential at each receiver; twice as many of its team." placeholder:"SIZE" setting:""`
}

// Rejects limits the rejects that are kept for an operator: uploads that could not be stored.
type Rejects struct {
	RejectsKeep         Duration `default:"30d"  help:"How long rejects are kept; longer than --stream-keep." placeholder:"DURATION" setting:""`
	RejectsMaxBytes     Size     `default:"1GiB" help:"Size of all rejects above which the oldest of the largest teams are deleted, counted and logged." placeholder:"SIZE" setting:"" positive:""`
	RejectsTeamMaxBytes Size     `help:"Size of one team's rejects above which its oldest are deleted. Raise it for few, large teams." implied:"an eighth of --rejects-max-bytes" placeholder:"SIZE" setting:""`
	ParkAfter           int      `default:"50"   help:"Deliveries after which an upload that the database still refuses becomes a reject; raise it if refusals pass by themselves." placeholder:"N" setting:"" positive:""`
}

// validateRejects checks the limits of the values. Rejects must outlive the stream: a replay of the stream must find
// each reject that it created before, or it would create it again.
func (c *Rejects) validateRejects(stream *Retention) error {
	if c.RejectsKeep <= stream.StreamKeep {
		return &ValueError{Flag: "rejects-keep", Reason: "must be longer than --stream-keep (STREAM_KEEP)"}
	}
	if c.RejectsTeamMaxBytes > c.RejectsMaxBytes {
		return &ValueError{Flag: "rejects-team-max-bytes", Reason: "must be at most --rejects-max-bytes (REJECTS_MAX_BYTES)"}
	}
	return nil
}

// TeamMaxBytes returns the limit of one team.
func (c *Rejects) TeamMaxBytes() Size {
	if c.RejectsTeamMaxBytes > 0 {
		return c.RejectsTeamMaxBytes
	}
	return c.RejectsMaxBytes / 8
}

// minAge is the least age at which readings are compressed or dropped. Younger chunks still receive uploads, so that
// they are not rewritten either.
const minAge = 24 * time.Hour

// Maintenance configures when workers rewrite old chunks in primary-key order. A chunk is locked meanwhile, so the
// default is never. The least timeout is longer than a rewrite waits for the lock of a chunk.
type Maintenance struct {
	MaintainAfter   Duration    `default:"14d"   help:"Age at which chunks are rewritten; longer than devices buffer readings." placeholder:"DURATION" setting:"" min:"1d"`
	MaintainWindow  DailyWindow `default:"never" help:"Hours of the day in UTC in which chunks are rewritten in primary-key order, for example 02:00-04:00, or never." placeholder:"FROM-TO" setting:""`
	MaintainTimeout Duration    `default:"10m" help:"Longest time for which a chunk may be locked. Chunks whose rewrite would take longer are skipped." placeholder:"DURATION" setting:"" min:"10s"`
}

// Layout configures how readings are stored. Both ages are policies of the Community edition of TimescaleDB; the Apache
// edition has neither.
type Layout struct {
	ChunkInterval    ChunkInterval `help:"Length of the chunks of new readings, in whole days from 1d to 90d, or auto: 7d, 3d or 1d, by the number of devices and shared_buffers." implied:"unchanged; 7d in a new database" placeholder:"DURATION" setting:""`
	ColumnstoreAfter Age           `default:"30d"   help:"Age at which readings are stored as columns, longer than devices buffer readings, or never (Community edition)." placeholder:"DURATION" setting:""`
	ReadingsKeep     Age           `default:"never" help:"Age at which readings are deleted permanently, or never (Community edition)." placeholder:"DURATION" setting:""`
}

const (
	// day is the unit of the length of chunks. A worker relies on chunks of a day or longer (decision 53 c).
	day = 24 * time.Hour
	// maxChunkInterval is the longest window of a request: a longer chunk saves no request anything.
	maxChunkInterval = 90 * day
)

// Validate checks the limits of the length and of both ages.
func (c *Layout) Validate() error {
	d := time.Duration(c.ChunkInterval)
	if c.ChunkInterval != ChunkIntervalAuto && (d > maxChunkInterval || d%day != 0) {
		return &ValueError{Flag: "chunk-interval", Reason: "must be whole days, from 1d to 90d, or the word auto"}
	}
	for _, setting := range []struct {
		flag string
		age  Age
	}{{"columnstore-after", c.ColumnstoreAfter}, {"readings-keep", c.ReadingsKeep}} {
		if setting.age != 0 && time.Duration(setting.age) < minAge {
			return &ValueError{Flag: setting.flag, Reason: "must be at least 1d, or the word never"}
		}
	}
	return nil
}
