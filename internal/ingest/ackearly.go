//go:build !chaos

package ingest

// ackEarly would break the rule that an acknowledgement follows the commit. It
// can be true only in a program that is built for a trial (package chaos),
// which has to notice it.
const ackEarly = false
