package httpedge

import (
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// Bytes in the kernel's buffer hide from the server whether a slow client still reads, so the buffer must be small.
func TestIdleListenerSendBuffer(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, listener.Close()) }()
	client, err := net.Dial("tcp", listener.Addr().String())
	require.NoError(t, err)
	defer func() { require.NoError(t, client.Close()) }()
	require.NoError(t, client.(*net.TCPConn).SetReadBuffer(4<<10))

	server, err := idleListener{listener, 500 * time.Millisecond}.Accept()
	require.NoError(t, err)
	defer func() { require.NoError(t, server.Close()) }()
	taken, err := server.Write(make([]byte, 64<<20))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.Positive(t, taken)
	require.Less(t, taken, 1<<20)
}

// A write may take longer than the stall timeout as long as bytes move.
func TestIdleConnWrite(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client, end := net.Pipe()
		server := &idleConn{Conn: end, stall: time.Second}
		stalled := make(chan struct{})
		defer close(stalled)
		go func() {
			defer func() { _ = client.Close() }()
			for range 10 { // A byte every 0.9 s, and then none.
				<-time.After(900 * time.Millisecond) // Of the bubble.
				if _, err := client.Read(make([]byte, 1)); err != nil {
					return
				}
			}
			<-stalled
		}()
		began := time.Now()
		written, err := server.Write(make([]byte, 100))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.Equal(t, 10, written)
		// The last byte went at 9 s, which may be seen a tenth of a second later.
		require.InDelta(t, 10.05, time.Since(began).Seconds(), 0.06)
	})
}

// A write deadline ends a write although bytes move, and fails the next one.
func TestIdleConnWriteDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client, end := net.Pipe()
		server := &idleConn{Conn: end, stall: time.Second}
		go func() {
			var err error
			for err == nil { // A byte every 0.9 s.
				<-time.After(900 * time.Millisecond) // Of the bubble.
				_, err = client.Read(make([]byte, 1))
			}
		}()
		began := time.Now()
		require.NoError(t, server.SetWriteDeadline(began.Add(10*time.Second)))
		for range 2 {
			_, err := server.Write(make([]byte, 100))
			require.ErrorIs(t, err, os.ErrDeadlineExceeded)
			require.Equal(t, 10*time.Second, time.Since(began))
		}
		require.NoError(t, server.SetWriteDeadline(time.Time{}))
		_, err := server.Write(make([]byte, 1))
		require.NoError(t, err)
		require.NoError(t, client.Close())
		<-time.After(time.Second) // Until the reader has ended.
	})
}
