// Package demo runs the whole service in one process, with a team of simulated devices that have a history.
//
//   - demo.go: Run and the start of database, queue and processes, in order
//   - devices.go: the devices of the team, and what each of them demonstrates
//   - team.go: creates the team, its keys, devices and assignments with the operator's use cases
//   - history.go: fills the readings up to now
//   - live.go: the devices that keep reporting
//   - dashboard.go: the dashboard, and its people
//   - rejects.go: uploads that are rejected
//   - listen.go: listens on the next free port if an address is in use
//   - print.go: prints addresses, keys, devices and commands to try
//   - logfile.go: the log of the processes
//   - state.go: the data directory, its lock and the state that a restart continues from
package demo
