package config_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/config"
)

func TestBroker(t *testing.T) {
	t.Parallel()
	for url, address := range map[string]string{
		"mqtt://host": "host:1883", "mqtts://user:p%40ss@host/": "host:8883", "mqtt://[::1]:1884": "[::1]:1884",
	} {
		broker := config.Broker{MQTTURL: config.Secret(url)}
		require.NoError(t, broker.Validate())
		require.Equal(t, address, broker.Address())
	}
	for _, url := range []string{"", "host:1883", "tcp://host", "mqtt://", "mqtt://host:x", "mqtt://host/topic", "mqtt://host?x"} {
		broker := config.Broker{MQTTURL: config.Secret(url)}
		require.ErrorContains(t, broker.Validate(), "--mqtt-url (MQTT_URL) ", url)
	}
	require.Equal(t, "mqtt://user:xxxxx@host", config.Secret("mqtt://user:secret@host").String())
}

func TestSubscription(t *testing.T) {
	t.Parallel()
	const id = "6fa459ea-ee8a-4ca4-894e-db77e160355e"
	for _, text := range []string{"a/+=" + id, "#=" + id, "a=b/#=" + id, "+/events/rpc=" + id} {
		var s config.Subscription
		require.NoError(t, s.UnmarshalText([]byte(text)))
		require.Equal(t, text, s.String())
	}
	for _, text := range []string{"", "a", id, "=" + id, "a=x", "a+=" + id, "#/a=" + id, "a#=" + id, "$share/g/a=" + id, "\xff=" + id} {
		var s config.Subscription
		require.ErrorContains(t, s.UnmarshalText([]byte(text)), "must have the form FILTER=SOURCE_ID", text)
	}
	var name config.TopicLevel
	require.NoError(t, name.UnmarshalText([]byte("host-1")))
	require.Error(t, name.UnmarshalText([]byte("a/b")))
}
