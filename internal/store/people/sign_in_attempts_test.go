package people_test

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
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

// TestPurgeSignIns checks that a row goes when it has no effect any more, and that others stay.
func TestPurgeSignIns(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.person(t, "anna@example.com", roomsensor.Viewer)
	for table, row := range map[string]string{ // Columns, and their values at the end of a time.
		"sessions":          `(token_hash, data, expires_at) SELECT encode(key, 'hex'), '', at - INTERVAL '1 hour'`,
		"sign_in_attempts":  `(key_sha256, attempts, began_at) SELECT key, 1, at - INTERVAL '15 minutes'`,
		"sign_in_addresses": `(address_sha256, user_id, signed_in_at) SELECT key, u.id, at - INTERVAL '30 days'`,
		"sign_in_links":     `(token_sha256, user_id, purpose, expires_at) SELECT key, u.id, 'reset', at - INTERVAL '30 days'`,
		"shared_links": `(token_sha256, made_by, team_id, night, expires_at)
			SELECT key, u.id, (SELECT min(id::text)::uuid FROM teams), '2026-11-20', at`,
	} {
		f.Exec(t, `INSERT INTO `+table+row+` FROM users u, (VALUES (sha256('goes'), now() - INTERVAL '1 minute'),
			(sha256('stays'), now() + INTERVAL '1 minute')) AS v (key, at)`)
	}
	deleted, err := f.PurgeSignIns(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 5, deleted)
	require.Equal(t, 5, f.Number(t, `SELECT count(*) FROM (SELECT decode(token_hash, 'hex') AS key FROM sessions
		UNION ALL SELECT key_sha256 FROM sign_in_attempts UNION ALL SELECT address_sha256 FROM sign_in_addresses
		UNION ALL SELECT token_sha256 FROM sign_in_links UNION ALL SELECT token_sha256 FROM shared_links
	) rest WHERE key = sha256('stays')`))
}
