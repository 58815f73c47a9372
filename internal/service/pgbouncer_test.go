package service_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/schema"
	"roomsensor/test/dbtest"
)

// TestPgBouncer checks what a process relies on behind PgBouncer in transaction mode: it names no prepared statement and
// no setting but application_name, and it is ready only if its role has the timeouts.
func TestPgBouncer(t *testing.T) {
	t.Parallel()
	db := dbtest.New(t)
	prepared := make(chan string, 1)
	note := func(what string) {
		select {
		case prepared <- what:
		default:
		}
	}
	tapped := dbtest.Tap(t, db.As(t, schema.RoleAPI), func(m dbtest.Message) bool {
		switch {
		case m.FromServer:
		case m.Type == 'P' && m.Body[0] != 0:
			note("statement " + string(m.Body[:bytes.IndexByte(m.Body, 0)]))
		case m.Type == 0 && bytes.Contains(m.Body, []byte("_timeout")):
			note("parameters " + string(m.Body))
		}
		return true
	})
	cfg := apiConfig(tapped)
	cfg.PgBouncer = true
	r := startAPI(t, cfg)
	r.awaitReady()
	require.NoError(t, r.end())
	require.Empty(t, prepared)

	cfg = apiConfig(db.URL)
	cfg.PgBouncer = true
	r = startAPI(t, cfg) // The superuser of the tests has no timeouts.
	awaitReadiness(t, r.address("ops"), 503, "has no statement_timeout")
	require.NoError(t, r.end())
}
