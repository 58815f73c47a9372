package page

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNetwork(t *testing.T) {
	t.Parallel()
	for client, want := range map[string]string{
		"192.0.2.7":          "192.0.2.0/24",
		"::ffff:192.0.2.200": "192.0.2.0/24",
		"2001:db8:1:2::3":    "2001:db8:1::/48",
		"fe80::1%eth0":       "fe80::/48",
		"":                   "",
	} {
		require.Equal(t, want, Network(client), client)
	}
}
