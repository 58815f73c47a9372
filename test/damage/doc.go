// Package damage is a trial of damaged files: it flips bits and cuts tails in the files of NATS and of PostgreSQL while
// they are stopped, starts them again, and compares what is left with what was confirmed. The table "Damaged files" of
// docs/operate/reliability.md has the results; the expectations here are that table.
//
// `go tool task damage` has all kinds of damage. The tests of other runs have the few that take least time.
package damage
