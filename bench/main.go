// Bench compares roomsensor with what the same work costs with PostgreSQL's own tools, side by side in one run on one
// server. `go tool task bench` and `bench:quick` call it. bench/peers is the same program with other programs beside
// it. README.md explains the ratios.
package main

import "roomsensor/bench/workload"

func main() { workload.Main(nil) }
