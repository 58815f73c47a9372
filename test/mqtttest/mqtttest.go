// Package mqtttest runs MQTT brokers for tests and trials: one inside the process, and mosquitto with its client.
//
//	mqtttest.go   Broker, inside the process
//	mosquitto.go  Mosquitto, Debian's broker and client
package mqtttest

import (
	"crypto/tls"
	"log/slog"
	"testing"

	mqtt "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/hooks/auth"
	"github.com/mochi-mqtt/server/v2/listeners"
	"github.com/stretchr/testify/require"

	"roomsensor/test/tlstest"
)

// Broker is a broker inside the process. It keeps its sessions in memory.
type Broker struct {
	URL string

	server *mqtt.Server
}

// New starts a broker that ends with the test.
func New(t testing.TB) *Broker {
	t.Helper()
	return serve(t, "mqtt", nil, &auth.Ledger{
		Auth: auth.AuthRules{{Allow: true}}, ACL: auth.ACLRules{{}},
	})
}

// NewSecure starts a broker that needs TLS, a user and a password, and ends with the test.
func NewSecure(t testing.TB, certificates tlstest.Certificates, user, password string) *Broker {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(certificates.Server, certificates.Key)
	require.NoError(t, err)
	secure := &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	return serve(t, "mqtts", secure, &auth.Ledger{
		Auth: auth.AuthRules{{Username: auth.RString(user), Password: auth.RString(password), Allow: true}},
		ACL:  auth.ACLRules{{}},
	})
}

func serve(t testing.TB, scheme string, config *tls.Config, users *auth.Ledger) *Broker {
	t.Helper()
	server := mqtt.New(&mqtt.Options{InlineClient: true, Logger: slog.New(slog.DiscardHandler)})
	listener := listeners.NewTCP(listeners.Config{ID: "tcp", Address: "127.0.0.1:0", TLSConfig: config})
	require.NoError(t, server.AddHook(new(auth.Hook), &auth.Options{Ledger: users}))
	require.NoError(t, server.AddListener(listener))
	require.NoError(t, server.Serve())
	t.Cleanup(func() { require.NoError(t, server.Close()) })
	return &Broker{scheme + "://" + listener.Address(), server}
}

// Address returns the URL of the broker.
func (b *Broker) Address() string { return b.URL }

// Publish publishes a message with QoS 1.
func (b *Broker) Publish(t testing.TB, topic, payload string, retained bool) {
	t.Helper()
	require.NoError(t, b.server.Publish(topic, []byte(payload), retained, 1))
}
