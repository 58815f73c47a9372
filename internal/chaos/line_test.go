package chaos

import (
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const patience = 30 * time.Second

// echo is a server that sends back what it gets.
func echo(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(conn, conn)
				_ = conn.Close()
			}()
		}
	}()
	return l.Addr().String()
}

func openLine(t *testing.T, upstream string) *line {
	t.Helper()
	l, err := newLine(t.Name(), "test://user@"+upstream+"/path")
	require.NoError(t, err)
	t.Cleanup(l.close)
	require.Equal(t, "test://user@"+l.proxy.Listen+"/path", l.url)
	return l
}

func dial(t *testing.T, l *line) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", l.proxy.Listen)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
	return conn
}

// call sends a word and waits for it to come back.
func call(conn net.Conn) error {
	_, err := conn.Write([]byte("word"))
	if err == nil {
		_, err = io.ReadFull(conn, make([]byte, len("word")))
	}
	return err
}

// TestToxics has a connection that was there before and one that comes meanwhile; after the cure another one works.
func TestToxics(t *testing.T) {
	t.Parallel()
	passes := map[string]bool{"latency": true, "bandwidth": true, "timeout": false, "reset_peer": false}
	for _, toxic := range toxics {
		for _, toxic.Upstream = range []bool{false, true} {
			t.Run(toxic.String(), func(t *testing.T) {
				t.Parallel()
				l := openLine(t, echo(t))
				before := dial(t, l)
				require.NoError(t, call(before))
				require.NoError(t, l.poison(toxic))
				require.Error(t, l.poison(toxic), "it is there already")
				for _, conn := range []net.Conn{before, dial(t, l)} {
					if !passes[toxic.Type] {
						require.NoError(t, conn.SetDeadline(time.Now().Add(200*time.Millisecond)))
					}
					require.Equal(t, passes[toxic.Type], call(conn) == nil)
				}
				require.NoError(t, l.heal(toxic))
				require.Error(t, l.heal(toxic), "it is gone")
				require.NoError(t, call(dial(t, l)))
			})
		}
	}
}

// TestBlackHoleKeepsTheConnection tells it from a reset: nothing comes, and no error either, until it is cured.
func TestBlackHoleKeepsTheConnection(t *testing.T) {
	t.Parallel()
	l := openLine(t, echo(t))
	conn := dial(t, l)
	hole := toxics[1]
	require.NoError(t, l.poison(hole))
	require.NoError(t, conn.SetDeadline(time.Now().Add(200*time.Millisecond)))
	require.ErrorIs(t, call(conn), os.ErrDeadlineExceeded)
	require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
	require.NoError(t, l.heal(hole))
	_, err := conn.Read(make([]byte, 1))
	require.Error(t, err)
	require.NotErrorIs(t, err, os.ErrDeadlineExceeded)
}

func TestRedirect(t *testing.T) {
	t.Parallel()
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, gone.Close())
	l := openLine(t, gone.Addr().String())
	before := l.proxy.Listen
	require.Error(t, call(dial(t, l)))
	require.NoError(t, l.redirect(echo(t)))
	require.Equal(t, before, l.proxy.Listen)
	require.NoError(t, call(dial(t, l)))
}

func TestLineToNowhere(t *testing.T) {
	t.Parallel()
	_, err := newLine("broken", "://")
	require.ErrorContains(t, err, "opening the line broken")
}
