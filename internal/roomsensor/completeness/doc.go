// Package completeness has the rules of coverage and gaps: which readings of a device a window should have, and which
// of them exist. It does no I/O.
package completeness
