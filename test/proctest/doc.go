// Package proctest runs roomsensor and nats-server as real processes. Tests and trials use it to see what signals,
// crashes and long loads do to them, which does not show inside one process.
//
//	address.go   free ports, each given out once per machine
//	process.go   build, start, signal, stop and measure a process
//	tree.go      processor time and memory of a process with its children
//	ready.go     wait until a process answers; start a command of roomsensor that serves
//	nats.go      a NATS server that can be killed and restarted with its streams
//	output.go    what a process writes, while it writes it
//	proxy.go     a TCP proxy whose connections can be cut
//	echo.go      a server behind it, for tests of proxies
package proctest
