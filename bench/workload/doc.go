// Package workload contains the workloads W1 to W17. Each is compared with a baseline on one database in one run. The
// rows P3, P4 and P8 of bench/peers use the same setup.
//
//	main.go         the program
//	options.go      sizes and flags
//	suite.go        setup, order of the workloads, alternating rounds
//	client.go       API clients and upload senders
//	w1_current.go   /devices/current
//	w2_page.go      pages of readings
//	w3_export.go    CSV exports
//	w4_patch.go     PATCH of devices
//	w5_upsert.go    upsert of readings
//	w6_upload.go    uploads from the receiver to the commit
//	w7_memory.go    memory of exports and of a backlog
//	w8_latency.go   latency of reads under uploads
//	w9_growth.go    latency of reads with a larger table
//	teams.go        many small teams with processes of their own
//	w11_single.go   uploads of one reading each
//	w12_teams.go    /devices/current of many teams, also from a new process
//	w13_together.go  latency of W11 and W12 at the same time
//	w14_cold.go pages and exports that nothing has read before
//	w15_teams_memory.go memory of snapshots of many teams
//	w16_processor.go processor time per reading
//	roofline.go     the least processor time of each stage of W16, and of the encoding of W3
//	p8_changes.go   time from a commit to a client of the change feed
package workload
