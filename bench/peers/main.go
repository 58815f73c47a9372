// Peers is bench with other programs beside it: InfluxDB in W11, and VictoriaMetrics in P3 and P4, on the same readings
// and in the same run. `go tool task bench:peers` calls it. It is a module of its own, because the tests do not need
// it, and it needs the network to build these programs.
//
//	rows.go             P3 and P4
//	points.go           InfluxDB in W11
//	peer.go             starts and queries another program
//	cells.go            readings value by value, and as lines
//	victoriametrics.go  VictoriaMetrics
package main

import "roomsensor/bench/workload"

func main() { workload.Main(&workload.Peers{Rows: compare, Points: points}) }
