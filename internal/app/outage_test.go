package app_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// While the database is away uploads are accepted, the process says that it is not ready, goes on, and asks for the
// database now and then instead of all the time. Once it is back everything is stored.
func TestAnOutageOfTheDatabaseIsWaitedOut(t *testing.T) {
	t.Parallel()
	i := install(t)
	database := newLine(t, i.database)
	cfg := i.config()
	cfg.DatabaseURL = database.url
	r := startIngest(t, cfg)
	ops, receiver := r.address("ops"), r.address("receiver")
	r.awaitReady()
	const each = 5 // All of them fit on a page.
	sent := 0
	upload := func() {
		status, body := i.upload(receiver, sent, each)
		require.Equal(t, 202, status, body)
		sent += each
	}
	upload()
	i.awaitStored(sent)

	const outage = 12 * time.Second
	before, cut := database.attempts.Load(), time.Now()
	database.cut()
	unready := false
	require.Eventually(t, func() bool {
		upload()
		status, body := get(t, ops+"/readyz")
		unready = unready || status == 503
		alive, _ := get(t, ops+"/livez")
		require.Equal(t, 200, alive, body)
		return time.Since(cut) > outage && unready
	}, patience, 250*time.Millisecond)
	took, attempts := time.Since(cut), database.attempts.Load()-before
	t.Logf("%d attempts to connect in %s", attempts, took)
	require.Less(t, float64(attempts), 20+5*took.Seconds(), "it does not spin")

	database.mend()
	awaitReadiness(t, ops, 200, "ready", patience)
	i.awaitStored(sent)
	require.NoError(t, r.end())
}
