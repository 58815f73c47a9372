package main

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/cli"
	"roomsensor/test/dbtest"
	"roomsensor/test/mqtttest"
	"roomsensor/test/natstest"
	"roomsensor/test/proctest"
)

// waitTimeout bounds every wait for a process.
const waitTimeout = 2 * time.Minute

func TestServeUntilInterrupted(t *testing.T) {
	t.Parallel()
	servers := map[string]string{"DATABASE_URL": dbtest.New(t).URL, "NATS_URL": natstest.New(t).URL, "MQTT_URL": mqtttest.New(t).Address()}
	// A receiver is ready once it has the ingest keys that a worker publishes, so that one runs after a worker.
	for _, process := range []struct{ command, checked string }{
		{"api", `["database"]`},
		{"dashboard", `["database"]`},
		{"notify", `["database"]`},
		{"ingest", `["queue","ingest keys","database","worker"]`},
		{"ingest --no-receiver", `["queue","database","worker"]`},
		{"ingest --no-worker", `["queue","ingest keys"]`},
		{"mqtt --subscribe a/+=6fa459ea-ee8a-4ca4-894e-db77e160355e", `["queue","sources","broker"]`},
	} {
		args := strings.Fields(process.command)
		env := map[string]string{
			"API_ADDR": "127.0.0.1:0", "INGEST_ADDR": "127.0.0.1:0", "DASHBOARD_ADDR": "127.0.0.1:0", "OPS_ADDR": proctest.Address(t), "LOG_LEVEL": "debug",
			"DATABASE_URL": servers["DATABASE_URL"], "NATS_URL": servers["NATS_URL"], "MQTT_URL": servers["MQTT_URL"],
		}
		before := execute(t, env, nil, "healthcheck")
		require.Equal(t, cli.ExitFailure, before.code)
		require.Contains(t, before.err, "Nothing listens on "+env["OPS_ADDR"])

		ctx, stop := context.WithCancel(t.Context())
		var stdout, log proctest.Output
		code := make(chan int, 1)
		go func() {
			code <- program().Run(ctx, args, func(name string) string { return env[name] }, nil, &stdout, &log)
		}()
		require.Eventually(t, func() bool {
			r := execute(t, env, nil, "healthcheck")
			return r.code == cli.ExitOK && r.out == `{"status":"ready","missing":[],"checked":`+process.checked+"}\n"
		}, waitTimeout, 20*time.Millisecond, "%v: %s", args, log.String())
		stop()
		require.Equal(t, cli.ExitOK, <-code, log.String())
		require.Empty(t, stdout.String(), "logs go to stderr")
		require.Contains(t, log.String(), `"message":"stopped"`)
	}
}

func TestHealthcheckNotReady(t *testing.T) {
	t.Parallel()
	env := map[string]string{"DATABASE_URL": "postgres://user:secret@127.0.0.1:1/x", "OPS_ADDR": proctest.Address(t)}
	ctx, stop := context.WithCancel(t.Context())
	var log proctest.Output
	code := make(chan int, 1)
	go func() {
		code <- program().Run(ctx, []string{"api"}, func(name string) string { return env[name] }, nil, &log, &log)
	}()
	require.Eventually(t, func() bool {
		r := execute(t, env, nil, "healthcheck")
		return r.code == cli.ExitFailure && strings.Contains(r.err, `{"name":"database","reason":"does not answer at 127.0.0.1:1"}`)
	}, waitTimeout, 20*time.Millisecond)
	stop()
	require.Equal(t, cli.ExitOK, <-code)
	require.NotContains(t, log.String(), "secret")
}

func TestServeAddressInUse(t *testing.T) {
	t.Parallel()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	r := execute(t, map[string]string{"DATABASE_URL": "postgres://127.0.0.1:1/x"}, nil, "api", "--ops-addr", l.Addr().String())
	require.Equal(t, cli.ExitFailure, r.code)
	require.Contains(t, r.err, "listening on "+l.Addr().String()+" for ops")
	require.Contains(t, r.err, "address already in use. Stop the process that uses the port, which ")
	_, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	require.Contains(t, r.err, ":"+port+"\" shows, or set --ops-addr (OPS_ADDR) to another address.\n")
	r = execute(t, map[string]string{"DATABASE_URL": "postgres://127.0.0.1:1/x"}, nil, "api", "--ops-addr", "192.0.2.1:1")
	require.Equal(t, cli.ExitFailure, r.code)
	require.Contains(t, r.err, ". Check --ops-addr (OPS_ADDR).\n", "no interface of this machine has the address")
}
