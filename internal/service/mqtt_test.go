package service_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/admin"
	"roomsensor/internal/config"
	"roomsensor/internal/process"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/service"
	"roomsensor/schema"
	"roomsensor/test/conformance"
	"roomsensor/test/dbtest"
	"roomsensor/test/mqtttest"
	"roomsensor/test/tlstest"
)

// broker is a broker of the tests.
type broker interface {
	Address() string
	Publish(t testing.TB, topic, payload string, retained bool)
}

// mqttEnv is a testEnv with a worker, a broker, and a source whose device samples.
type mqttEnv struct {
	*testEnv
	broker
	operator *admin.Operator
	source   uuid.UUID
	sent     int // readings
}

func newMQTTEnv(t *testing.T, b broker) *mqttEnv {
	t.Helper()
	e := &mqttEnv{testEnv: newTestEnv(t), broker: b}
	var err error
	e.operator, err = admin.Open(t.Context(), config.Database{DatabaseURL: config.Secret(e.database)})
	require.NoError(t, err)
	t.Cleanup(e.operator.Close)
	source, err := e.operator.CreateSource(t.Context(),
		roomsensor.Source{TeamID: e.team, Name: "Zigbee", Format: "zigbee2mqtt"}, func(string) string { return "" })
	require.NoError(t, err)
	e.source = uuid.MustParse(source.SourceID)
	worker := e.config()
	worker.NoReceiver = true
	startIngest(t, worker).awaitReady()
	return e
}

// mqtt returns the configuration of a process that subscribes to topics. Its role is that of the receiver.
func (e *mqttEnv) mqtt(filters ...string) config.MQTT {
	return mqttConfig((&dbtest.DB{URL: e.database}).As(e.t, schema.RoleReceiver), e.nats.URL, e.Address(), e.source, filters...)
}

func mqttConfig(database, nats, broker string, source uuid.UUID, filters ...string) config.MQTT {
	cfg := config.Defaults[config.MQTT]()
	cfg.DatabaseURL, cfg.NATSURL, cfg.MQTTURL = config.Secret(database), config.Secret(nats), config.Secret(broker)
	cfg.Protocol, cfg.OpsAddr = "5", "127.0.0.1:0"
	for _, filter := range filters {
		cfg.Subscribe = append(cfg.Subscribe, config.Subscription{Filter: filter, Source: source})
	}
	return cfg
}

// startMQTT starts a process, and returns it with its ops address once it is ready.
func startMQTT(t *testing.T, cfg config.MQTT) (r *runningProcess, ops string) {
	t.Helper()
	r = start(t, func(ctx context.Context, o process.Options) error { return service.RunMQTT(ctx, cfg, o) })
	ops = r.address("ops")
	r.awaitReady()
	return r, ops
}

// publish publishes readings of distinct buckets.
func (e *mqttEnv) publish(readings int) {
	e.t.Helper()
	for range readings {
		at := time.Date(2026, time.January, 1, 0, 5*e.sent, 3, 0, time.UTC)
		payload := fmt.Sprintf(`{"co2":%d,"last_seen":%q}`, 400+e.sent, roomsensor.FormatTime(at))
		e.Publish(e.t, "zigbee2mqtt/"+unit, payload, false)
		e.sent++
	}
}

// disable disables or enables the source.
func (e *mqttEnv) disable(disabled bool) {
	e.t.Helper()
	source := roomsensor.Source{ID: e.source, TeamID: e.team}
	_, err := e.operator.ChangeSource(e.t.Context(), &source, roomsensor.SourceChange{Disabled: &disabled})
	require.NoError(e.t, err)
}

// awaitCount waits until processes together have counted so many messages with a result.
func awaitCount(t *testing.T, result string, want int, ops ...string) {
	t.Helper()
	require.Eventually(t, func() bool {
		sum := 0
		for _, address := range ops {
			_, text := get(t, address+"/metrics")
			_, after, _ := strings.Cut(text, fmt.Sprintf("roomsensor_mqtt_messages_total{result=%q} ", result))
			var n int
			_, err := fmt.Sscan(after, &n)
			require.NoError(t, err)
			sum += n
		}
		return sum == want
	}, waitTimeout, 20*time.Millisecond)
}

// awaitLog waits until a process has logged a text.
func awaitLog(r *runningProcess, text string) {
	r.t.Helper()
	require.Eventually(r.t, func() bool { return strings.Contains(r.log.String(), text) }, waitTimeout, 20*time.Millisecond)
}

// protocols are the versions of MQTT.
var protocols = []string{"5", "3"}

// mqttTests are the tests that run with both brokers and versions.
var mqttTests = map[string]func(t *testing.T, b broker, protocol string){
	"messages": testMQTTMessages, "session": testMQTTSession, "share": testMQTTShare,
}

// TestMQTT runs the tests with the broker inside the process.
func TestMQTT(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "A14.1", "A14.2", "A14.3", "A14.4", "A14.5")
	for name, test := range mqttTests {
		for _, protocol := range protocols {
			t.Run(name+" "+protocol, func(t *testing.T) {
				t.Parallel()
				test(t, mqtttest.New(t), protocol)
			})
		}
	}
}

// TestMosquitto runs the tests with mosquitto.
func TestMosquitto(t *testing.T) {
	t.Parallel()
	for name, test := range mqttTests {
		for _, protocol := range protocols {
			t.Run(name+" "+protocol, func(t *testing.T) {
				t.Parallel()
				test(t, mqtttest.NewMosquitto(t), protocol)
			})
		}
	}
}

// testMQTTMessages checks what becomes of each kind of message, and that it is acknowledged.
func testMQTTMessages(t *testing.T, b broker, protocol string) {
	t.Helper()
	e := newMQTTEnv(t, b)
	e.Publish(t, "zigbee2mqtt/"+unit, `{"co2":1}`, true)
	earlier := e.mqtt("zigbee2mqtt/+", "tele/#")
	earlier.Protocol = protocol
	r, ops := startMQTT(t, earlier)
	e.publish(2)
	e.awaitStored(2)
	awaitCount(t, "stored", 2, ops)
	awaitCount(t, "retained", map[string]int{"5": 0, "3": 1}[protocol], ops) // With MQTT 5, none is asked for.
	require.NoError(t, r.end())
	require.Empty(t, r.warnings())

	now := earlier
	now.Subscribe = now.Subscribe[:1]
	r, ops = startMQTT(t, now)
	e.Publish(t, "tele/"+unit+"/SENSOR", `{"co2":1}`, false) // Of the subscription that is in the session still.
	awaitCount(t, "no_source", 1, ops)
	large := `{"co2":1,"text":"` + strings.Repeat("x", roomsensor.MaxUploadBytes) + `"}`
	e.Publish(t, "zigbee2mqtt/"+unit, large, false)
	e.Publish(t, "zigbee2mqtt/"+unit, `"`+strings.Repeat("x", roomsensor.MaxUploadBytes-10)+`"`, false)
	awaitCount(t, "too_large", 2, ops)
	e.Publish(t, "zigbee2mqtt/"+unit, "not \xff JSON", false) // The format ignores it.
	awaitCount(t, "stored", 1, ops)

	e.disable(true)
	require.Eventually(t, func() bool { // The process reads the source again.
		e.Publish(t, "zigbee2mqtt/"+unit, `{"state":"ON"}`, false)
		_, metrics := get(t, ops+"/metrics")
		return !strings.Contains(metrics, `roomsensor_mqtt_messages_total{result="disabled"} 0`)
	}, waitTimeout, 100*time.Millisecond)
	e.disable(false)
	require.NoError(t, r.end())
	require.Contains(t, r.log.String(), `"topic":"zigbee2mqtt/`+unit+`","reason":"too large"`)
	require.Equal(t, 1, strings.Count(r.log.String(), `"reason":"too large"`), "others are only counted")

	r, ops = startMQTT(t, now) // The broker has nothing left: all messages were acknowledged.
	e.publish(1)
	e.awaitStored(3)
	awaitCount(t, "stored", 1, ops)
	for _, result := range []string{"no_source", "too_large", "disabled"} {
		awaitCount(t, result, 0, ops)
	}
	require.NoError(t, r.end())
	now.Retained = true
	_, ops = startMQTT(t, now)
	awaitCount(t, "stored", 1, ops)
}

// testMQTTSession checks that the broker keeps messages without the process, the stream or the connection.
func testMQTTSession(t *testing.T, b broker, protocol string) {
	t.Helper()
	e := newMQTTEnv(t, b)
	proxy := newProxy(t, e.Address())
	cfg := e.mqtt("zigbee2mqtt/+")
	cfg.Protocol, cfg.MQTTURL = protocol, config.Secret(proxy.URL)
	r, _ := startMQTT(t, cfg)
	require.NoError(t, r.end())

	offline := 100 // More than may be in flight.
	if _, inside := b.(*mqtttest.Broker); inside {
		offline = 50 // With MQTT 5, the broker inside the process keeps no more.
	}
	e.publish(offline)
	r, _ = startMQTT(t, cfg)
	e.awaitStored(e.sent)

	proxy.Cut()
	awaitLog(r, "lost the connection to the broker")
	e.publish(1)
	proxy.Restore()
	e.awaitStored(e.sent)

	e.nats.Shutdown()
	e.publish(3)
	awaitLog(r, "could not store messages in the stream, retrying")
	require.NoError(t, r.end()) // It has not acknowledged them.
	e.nats.Restart(t)
	r, ops := startMQTT(t, cfg)
	e.awaitStored(e.sent)

	e.nats.Shutdown()
	e.Publish(t, "zigbee2mqtt/"+unit, `{"co2":1}`, false)
	awaitLog(r, "could not store messages in the stream, retrying")
	e.disable(true)
	awaitCount(t, "disabled", 1, ops) // Without the stream.
	require.NoError(t, r.end())
}

// testMQTTShare checks that processes with the same group share the messages.
func testMQTTShare(t *testing.T, b broker, protocol string) {
	t.Helper()
	e := newMQTTEnv(t, b)
	var ops []string
	for _, name := range []config.TopicLevel{"one", "two"} {
		cfg := e.mqtt("zigbee2mqtt/+")
		cfg.Protocol, cfg.Share, cfg.Replica = protocol, "group", name
		_, address := startMQTT(t, cfg)
		ops = append(ops, address)
	}
	e.publish(20)
	e.awaitStored(20)
	awaitCount(t, "stored", 20, ops...)
}

// TestMQTTLogin checks TLS, user and password, and that a refused one is the reason why the process is not ready.
func TestMQTTLogin(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "A14.1", "A14.5")
	certificates := tlstest.New(t, "localhost")
	e := newMQTTEnv(t, mqtttest.NewSecure(t, certificates, "gateway", "p@ss"))
	cfg := e.mqtt("zigbee2mqtt/+")
	address := strings.Replace(e.Address(), "127.0.0.1", "localhost", 1)
	for url, reason := range map[string]string{
		strings.Replace(address, "//", "//gateway:wrong-secret@", 1): "refuses the user or password in --mqtt-url (MQTT_URL)",
		strings.Replace(address, "mqtts", "mqtt", 1):                 "does not answer at localhost:",
		e.Address(): "presents a certificate that cannot be verified",
	} {
		cfg.MQTTURL, cfg.MQTTCA = config.Secret(url), certificates.CA
		r := start(t, func(ctx context.Context, o process.Options) error { return service.RunMQTT(ctx, cfg, o) })
		awaitReadiness(t, r.address("ops"), 503, `"name":"broker","reason":"`+reason)
		require.NoError(t, r.end())
		require.NotContains(t, r.log.String(), "wrong-secret")
	}
	cfg.MQTTURL = config.Secret(strings.Replace(address, "//", "//gateway:p%40ss@", 1))
	r, _ := startMQTT(t, cfg)
	e.publish(1)
	e.awaitStored(1)
	require.NoError(t, r.end())
}
