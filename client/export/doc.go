// Package export writes the readings of any period into one file, or into one file per month. It divides the period
// into parts that fit into one response each, downloads several at once, checks the number of readings of each, and
// joins them in order. The result has the bytes of one large response. An export that was interrupted continues where
// it stopped: run it again with the same request.
//
//	export.go     Run; the request, options and result
//	plan.go       divides the window and the devices
//	journal.go    what is on disk: the plan, complete parts, and how far the output is joined
//	state.go      what remains to be done
//	download.go   downloads and checks one part
//	join.go       joins parts into the output files
//	parquet.go    joins parts in Parquet
//	request.go    requests one part, and decides what to do about an error
//	check.go      asks whether an export would still have the same bytes
//
// The parts are begun in order, several at once, and each is read in one snapshot. A reading that arrives while the
// export runs is in the result if its part was not read yet. The devices of an export are those that the request names;
// otherwise those that have its tags at the time of each part.
package export
