package processes

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/test/proctest"
)

const patience = proctest.Patience

func openProxy(t *testing.T, server string) *proxy {
	t.Helper()
	p, err := newProxy(t.Name(), "test://user@"+server+"/path")
	require.NoError(t, err)
	t.Cleanup(p.close)
	require.Equal(t, "test://user@"+p.proxy.Listen+"/path", p.url)
	return p
}

func dial(t *testing.T, p *proxy) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", p.proxy.Listen)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
	return conn
}

// call sends a word and waits for the echo.
func call(conn net.Conn) error {
	_, err := conn.Write([]byte("word"))
	if err == nil {
		_, err = io.ReadFull(conn, make([]byte, len("word")))
	}
	return err
}

// TestProxyToxics adds each toxic while a connection is open, and opens another one. After the removal a new connection
// works.
func TestProxyToxics(t *testing.T) {
	t.Parallel()
	passes := map[string]bool{"latency": true, "bandwidth": true, "timeout": false, "reset_peer": false}
	for _, toxic := range toxics {
		for _, toxic.Stream = range []string{"downstream", "upstream"} {
			t.Run(toxic.String(), func(t *testing.T) {
				t.Parallel()
				p := openProxy(t, proctest.Echo(t))
				before := dial(t, p)
				require.NoError(t, call(before))
				require.NoError(t, p.addToxic(toxic))
				require.Error(t, p.addToxic(toxic), "added already")
				for _, conn := range []net.Conn{before, dial(t, p)} {
					if !passes[toxic.Type] {
						require.NoError(t, conn.SetDeadline(time.Now().Add(200*time.Millisecond)))
					}
					require.Equal(t, passes[toxic.Type], call(conn) == nil)
				}
				require.NoError(t, p.removeToxic(toxic))
				require.Error(t, p.removeToxic(toxic), "removed already")
				require.NoError(t, call(dial(t, p)))
			})
		}
	}
}
