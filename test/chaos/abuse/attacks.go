package abuse

import (
	"context"
	"slices"
	"time"
)

// attack is one way to overload the service.
type attack struct {
	name string
	does string
	team teamSize // of the attacker; every attack has its own team
	// patient is set if the database does not answer meanwhile. The tenant then repeats what gets 503, and its p99 is not
	// judged.
	patient bool
	// prepare brings the database into the state in which the attack starts; undo reverts what the attack left behind.
	prepare, undo func(context.Context, *env) error
	// atLeast is the shortest duration of the attack.
	atLeast time.Duration
	// load returns what the attacker does until its context ends. It runs in a process of its own.
	load func(*target) (func(context.Context, *attacker), error)
	// strike is what else happens, instead of the time of the options.
	strike func(context.Context, *env) error
	// during checks what must hold at the end of the attack, while the attacker still runs.
	during func(context.Context, *env) error
	// check checks what must hold after it.
	check func(context.Context, *env, Tally) error
	// last checks what must hold at the end of the trial.
	last func(context.Context, *env) error
}

// teamSize is what the team of an attacker has.
type teamSize struct{ devices, keys, credentials int }

// all returns the attacks in order. The rejects come first, because a worker deletes rejects once per minute.
func all() []*attack { return slices.Concat(onIngest(), onDashboard(), onAPI()) }

// onIngest returns the attacks on the receiver and the workers.
func onIngest() []*attack {
	return []*attack{
		{
			name: "rejects", does: "two credentials of a team send uploads of unknown units, 15 MiB per request",
			team: teamSize{1, 1, 2}, prepare: keepRejects, load: sendUnknown, last: checkRejects,
		},
		{
			name: "flood", does: "two credentials of a team send 15 MiB of readings per request",
			team: teamSize{50, 1, 2}, load: sendFlood, check: checkShares,
		},
		{
			name: "lines", does: "requests of 16 KB, which are 15 MiB of two-byte lines",
			team: teamSize{1, 1, 1}, load: sendLines,
		},
		{
			name: "bodies", does: "128 concurrent bodies of one credential, which then arrive a byte per second",
			team: teamSize{1, 1, 1}, load: sendBodies,
		},
		{
			name: "windows", does: "64 concurrent zstd bodies with a window of 16 MiB",
			team: teamSize{1, 1, 1}, load: sendWindows,
		},
		{
			name: "sources", does: "a source with a mapping of 500 paths, whose messages of 1 MB all become rejects",
			team: teamSize{1, 1, 2}, prepare: bindSource, load: sendMessages, check: checkOverloaded,
		},
	}
}

// onDashboard returns the attacks on the dashboard.
func onDashboard() []*attack {
	return []*attack{
		{
			name: "sign-ins", does: "64 attempts to sign in at once, each from another address and for another account",
			team: teamSize{1, 1, 1}, load: guessPasswords,
		},
		{
			name: "pages", does: "64 of the most expensive pages at once, and 1,500 live overviews with long URLs",
			team: teamSize{160, 1, 1}, prepare: insertHistory("pages"), load: openPages,
		},
	}
}

// onAPI returns the attacks on the API and the database.
func onAPI() []*attack {
	return []*attack{
		{
			name: "returning", does: "1,000 keys with full and expired rate windows return within a second",
			team: teamSize{1, returningKeys, 1}, prepare: fillRateWindows, load: returnAtOnce, check: checkReturned,
		},
		{
			name: "one-key", does: "20,000 requests of one key",
			team: teamSize{1, 1, 1}, load: sendOneKey,
		},
		{
			name: "tags", does: "lists, searches and changes of a team with 1,000 devices of maximal tags",
			team: teamSize{1000, 40, 1}, prepare: setTags, undo: removeTags, load: listDevices,
		},
		{
			name: "exports", does: "slow readers in all exports that two keys of a team can start, and bodies that never come",
			team: teamSize{100, 2, 1}, prepare: insertHistory("exports"), atLeast: 8 * time.Second,
			load: readSlowly, during: checkTransactions, check: checkEnded,
		},
		{
			name: "scans", does: "64 pages that read much at once, and 1,000 waits for changes with long URLs",
			team: teamSize{160, 40, 1}, prepare: insertHistory("scans"), load: readMuch, during: checkWaiting,
		},
		{
			name: "poison", does: "a trigger that refuses the readings of one device",
			team: teamSize{1, 1, 1}, prepare: addTrigger, undo: dropTrigger, load: sendPoison,
		},
		{
			name: "database", does: "readings is locked for 3 s, while two credentials of a team send 40 MiB",
			team: teamSize{50, 1, 2}, patient: true, load: sendBacklog, strike: lockReadings,
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
