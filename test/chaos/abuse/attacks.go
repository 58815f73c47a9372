package abuse

import "context"

// The teams of the attackers.
const (
	flooding  = "Flooding"  // uploads more than the workers store
	rejected  = "Rejected"  // uploads of units that are not registered
	returning = "Returning" // keys that come back at the same second
	large     = "Large"     // devices with the most tags
	exporting = "Exporting" // readings for exports
	broken    = "Broken"    // a device whose readings the database refuses
	old       = "Old"       // a device that uploads years at once
)

// attack is one way to overload the service.
type attack struct {
	name string
	does string
	by   string // name of the attacking team
	// patient is set if the database does not answer meanwhile. The tenant then repeats what gets 503, and its p99 is not
	// judged.
	patient bool
	// prepare brings the database into the state in which the attack starts; undo reverts what the attack left behind.
	prepare, undo func(context.Context, *env) error
	// load returns what the attacker does until its context ends. It runs in a process of its own.
	load func(*target) (func(context.Context, *attacker), error)
	// strike is the attack itself if there is no load.
	strike func(context.Context, *env) error
	// during checks what must hold at the end of the attack, while the attacker still runs.
	during func(context.Context, *env) error
	// check checks what must hold after it.
	check func(context.Context, *env, Tally) error
	// last checks what must hold at the end of the trial.
	last func(context.Context, *env) error
}

// all returns the attacks in order. The rejects come first, because a worker deletes rejects once per minute.
func all() []*attack {
	return []*attack{
		{
			name: "rejects", does: "two credentials of a team send uploads of unknown units, 15 MiB per request",
			by: rejected, prepare: keepRejects, load: sendUnknown, last: checkRejects,
		},
		{
			name: "lines", does: "requests of 16 KB, which are 16 MiB of two-byte lines",
			by: flooding, load: sendLines,
		},
		{
			name: "bodies", does: "128 concurrent bodies of one credential, which then arrive a byte per second",
			by: flooding, load: sendBodies,
		},
		{
			name: "windows", does: "64 concurrent zstd bodies with a window of 16 MiB",
			by: flooding, load: sendWindows,
		},
		{
			name: "bombs", does: "gzip and zstd bombs, and 16 MiB of nested JSON",
			by: flooding, load: sendBombs,
		},
		{
			name: "returning", does: "1,000 keys with full and expired rate windows return within a second",
			by: returning, prepare: fillRateWindows, load: returnAtOnce, check: checkReturned,
		},
		{
			name: "one-key", does: "20,000 requests of one key",
			by: returning, load: sendOneKey,
		},
		{
			name: "tags", does: "four lists at once of a team with 1,000 devices of maximal tags",
			by: large, prepare: setTags, undo: removeTags, load: listDevices,
		},
		{
			name: "exports", does: "slow readers in all exports that two keys of a team can start",
			by: exporting, prepare: insertExport, load: readSlowly, during: checkTransactions,
		},
		{
			name: "flood", does: "two credentials of a team send 15 MiB of readings per request",
			by: flooding, load: sendFlood, check: checkShares,
		},
		{
			name: "keys", does: "10,000 made-up keys, with and without a right checksum, to API and receiver",
			by: flooding, load: makeUpKeys,
		},
		{
			name: "poison", does: "a trigger that refuses the readings of one device",
			by: broken, prepare: addTrigger, undo: dropTrigger, load: sendPoison,
		},
		{
			name: "database", does: "readings is locked for 3 s",
			patient: true, strike: lockReadings,
		},
		// The last one, because its chunks slow down what follows.
		{
			name: "weeks", does: "one upload over 600 weeks",
			by: old, prepare: countChunks, undo: dropChunks, load: sendWeeks,
		},
	}
}

// find returns an attack by its name, or nil.
func find(name string) *attack {
	for _, a := range all() {
		if a.name == name {
			return a
		}
	}
	return nil
}
