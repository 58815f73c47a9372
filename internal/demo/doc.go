// Package demo runs the whole service in one process, with a team of simulated devices that have a history.
//
//   - demo.go: Run and the start of database, queue and processes, in order
//   - devices.go: the devices of the team, and what each of them demonstrates
//   - team.go: creates the team, its keys, devices and assignments with the operator's use cases
//   - history.go: fills the readings up to now
//   - live.go: the devices that keep reporting, and uploads that are rejected
//   - dashboard.go: the dashboard, and its people
//   - listen.go: the addresses of the processes; it takes the next free port if one is in use
//   - print.go: prints addresses, keys, devices and commands to try
//   - state.go: the data directory, its lock, its log, and the state that a restart continues from
package demo
