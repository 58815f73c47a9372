package store

import (
	"net"
	"syscall"
	"time"
)

// mostSilence is how long a server may leave what was sent to it without a sign of life before its connection is given
// up. A machine that died or was cut off says nothing: without a limit the system sends the same bytes for a quarter of
// an hour, and a transaction waits for as long as its context lets it, while the standby was promoted long ago. A
// statement may take its time: the system at the other end answers for a server that is busy.
const mostSilence = 10 * time.Second

// controller sets up a connection before it is made; nil leaves it as it is.
type controller func(network, address string, conn syscall.RawConn) error

// newDialer makes connections that notice such a server while an answer is awaited and, with limitSilence, while
// something is on its way to it. Those of exports go without: an export asks for more than the server may have room
// for, and the server takes it in at the pace of the client. To the limit that is silence, although the other end
// confirms all along that it has no room. Exports have a limit of their own, on progress.
func newDialer(limit controller) *net.Dialer {
	const idle, every, count = 4 * time.Second, 2 * time.Second, 3 // mostSilence in all.
	return &net.Dialer{
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: idle, Interval: every, Count: count},
		Control:         limit,
	}
}
