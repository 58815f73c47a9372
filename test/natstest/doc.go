// Package natstest gives a test a NATS server of its own, with JetStream.
//
// Files:
//
//	natstest.go     Server, in the process of the test
//	container.go    Server in a container, whose connections break as they do when a machine fails
package natstest
