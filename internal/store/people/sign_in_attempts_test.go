package people_test

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor/accounts"
)

// TestSignInNetwork checks that somebody who has a network cannot fill the table: beyond the limit, attempts from new
// addresses and for new accounts add no rows.
func TestSignInNetwork(t *testing.T) {
	t.Parallel()
	f := setup(t)
	attempt := func(address string, n int) bool {
		wait, err := f.CountSignIn(t.Context(), accounts.SignInAttempt{
			Email: fmt.Sprintf("a%d@example.com", n), Address: netip.MustParseAddr(address),
		})
		require.NoError(t, err)
		return wait == 0
	}
	rows := func() int { return f.Number(t, `SELECT count(*) FROM sign_in_attempts`) }
	require.True(t, attempt("2001:db8:1::1", 1))
	require.Equal(t, 4, rows())
	f.Exec(t, `UPDATE sign_in_attempts SET attempts = $1 WHERE attempts = 1
		AND key_sha256 = sha256(convert_to('network', 'UTF8') || '\x00' || convert_to('2001:db8:1::/48', 'UTF8'))`,
		accounts.MaxNetworkAttempts)
	for i := range 5 {
		require.False(t, attempt(fmt.Sprintf("2001:db8:1:%d::1", i+2), i+2))
	}
	require.Equal(t, 4, rows())
	require.True(t, attempt("2001:db8:2::1", 9))
	for address, want := range map[string]string{
		"192.0.2.7": "192.0.2.0/24", "::ffff:192.0.2.200": "192.0.2.0/24", "2001:db8:1:2::3": "2001:db8:1::/48",
		"fe80::1%eth0": "fe80::/48",
	} {
		require.Equal(t, want, accounts.Network(netip.MustParseAddr(address)))
	}
	require.Equal(t, "invalid IP", accounts.Network(netip.Addr{}))
}
