//go:build !chaos

package worker

// ackEarly is false in every product build: an acknowledgement follows the commit. The build tag chaos replaces it for
// the negative control of the chaos trials.
const ackEarly = false
