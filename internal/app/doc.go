// Package app wires every process together and runs it: what starts in which
// order, what is waited for, and how all of it ends in order. It also holds
// what the operator's commands do.
package app
