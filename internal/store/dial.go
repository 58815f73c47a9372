package store

import (
	"net"
	"time"
)

// mostSilence is how long a server may leave what was sent to it without a sign of life before its connection is given
// up. A machine that died or was cut off says nothing: without a limit the system sends the same bytes for a quarter of
// an hour, and a transaction waits for as long as its context lets it, while the standby was promoted long ago. A
// statement may take its time: the system at the other end answers for a server that is busy.
const mostSilence = 10 * time.Second

// newDialer makes connections that notice such a server.
func newDialer() *net.Dialer {
	const idle, every, count = 4 * time.Second, 2 * time.Second, 3 // mostSilence, while an answer is awaited.
	return &net.Dialer{
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: idle, Interval: every, Count: count},
		Control:         limitSilence,
	}
}
