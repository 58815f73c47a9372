// Package compress chooses the content coding of a response (Choose) and applies it to a stream (Writer) or to a whole
// body (Append). It uses the fastest level of each coding: slower ones cost several times the CPU time for little gain
// (decision 33).
package compress
