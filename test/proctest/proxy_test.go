package proctest_test

import (
	"io"
	"net"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/test/proctest"
)

// talk sends a word over a connection and returns the echo.
func talk(t *testing.T, conn net.Conn) (string, error) {
	t.Helper()
	text := make([]byte, 4)
	if _, err := conn.Write([]byte("word")); err != nil {
		return "", err
	}
	_, err := io.ReadFull(conn, text)
	return string(text), err
}

func TestProxyCut(t *testing.T) {
	t.Parallel()
	proxy, err := proctest.NewProxy(t.Context(), "any://user@"+proctest.Echo(t)+"/path")
	require.NoError(t, err)
	defer func() { require.NoError(t, proxy.Close()) }()
	u, err := url.Parse(proxy.URL)
	require.NoError(t, err)
	require.Equal(t, "any://user@"+u.Host+"/path", proxy.URL)
	dial := func() net.Conn {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", u.Host)
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
	first := dial()
	echoed, err := talk(t, first)
	require.NoError(t, err)
	require.Equal(t, "word", echoed)

	proxy.Cut()
	_, err = talk(t, first)
	require.Error(t, err)
	_, err = talk(t, dial())
	require.Error(t, err)

	proxy.Restore()
	echoed, err = talk(t, dial())
	require.NoError(t, err)
	require.Equal(t, "word", echoed)
	require.EqualValues(t, 3, proxy.Attempts())
}
