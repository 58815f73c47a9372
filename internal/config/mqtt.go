package config

import (
	"bytes"
	"cmp"
	"errors"
	"net"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/rs/zerolog"
)

// MQTTS is the scheme of an MQTT broker that expects TLS.
const MQTTS = "mqtts"

var mqttPorts = map[string]string{"mqtt": "1883", MQTTS: "8883"}

// Broker is the location of an MQTT broker.
type Broker struct {
	MQTTURL Secret `help:"URL of the MQTT broker: mqtt://USER:PASSWORD@HOST:1883, or mqtts:// for TLS." name:"mqtt-url" placeholder:"URL" setting:"" rule:"mqtt-url"`
	MQTTCA  string `help:"File with the certificates of the CAs of the MQTT broker. Set it if a CA of your own signed the broker's certificate." implied:"those of the system" name:"mqtt-ca" placeholder:"FILE" setting:"" rule:"certificates"`
}

// Validate checks the form of the URL and the file of the CAs.
func (c *Broker) Validate() error { return validate(c) }

// URL reads and parses the URL of the broker.
func (c *Broker) URL() (*url.URL, error) {
	text, err := c.MQTTURL.Read()
	if err != nil {
		return nil, err
	}
	return url.Parse(text) //nolint:wrapcheck // Its callers say what the URL is for.
}

// Address returns the host and the port of the broker.
func (c *Broker) Address() string {
	u, err := c.URL()
	if err != nil {
		return ""
	}
	return net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), mqttPorts[u.Scheme]))
}

var errMQTTURL = errors.New("must have the form mqtt://HOST:PORT or mqtts://HOST:PORT, with USER:PASSWORD@ before " +
	"the host if the broker needs them. Encode special characters of a password, such as %40 for @")

func mqttURL(value string) error {
	u, err := url.Parse(value)
	if err != nil || mqttPorts[u.Scheme] == "" || u.Hostname() == "" || !hasGoodPort(u) ||
		strings.Trim(u.Path, "/") != "" || u.RawQuery != "" {
		return errMQTTURL
	}
	return nil
}

// Subscription is a filter of topics and the source that takes their messages, written as FILTER=SOURCE_ID.
type Subscription struct {
	Filter string
	Source uuid.UUID
}

var errSubscription = errors.New("must have the form FILTER=SOURCE_ID, with the id of a source. The filter is a " +
	"topic, in which + is any one level and # at the end is all further levels, such as zigbee2mqtt/+")

// UnmarshalText parses a subscription.
func (s *Subscription) UnmarshalText(text []byte) error {
	end := bytes.LastIndexByte(text, '=')
	if end < 0 {
		return errSubscription
	}
	id, err := uuid.ParseBytes(text[end+1:])
	if err != nil || !isFilter(string(text[:end])) {
		return errSubscription
	}
	*s = Subscription{string(text[:end]), id}
	return nil
}

func (s Subscription) String() string { return s.Filter + "=" + s.Source.String() }

// isFilter reports whether a text is a filter of topics. $share is an option of its own.
func isFilter(text string) bool {
	levels := strings.Split(text, "/")
	for i, level := range levels {
		last := i == len(levels)-1
		if strings.ContainsAny(level, "+#\x00") && level != "+" && (level != "#" || !last) {
			return false
		}
	}
	const maxFilter = 60_000 // bytes, with room for $share/GROUP/
	return text != "" && len(text) < maxFilter && utf8.ValidString(text) && levels[0] != "$share"
}

// TopicLevel is a name that can be a level of a topic.
type TopicLevel string

// UnmarshalText checks the name.
func (l *TopicLevel) UnmarshalText(text []byte) error {
	if len(text) == 0 || len(text) > maxLevel || bytes.ContainsAny(text, "/+#\x00") || !utf8.Valid(text) {
		return errLevelName
	}
	*l = TopicLevel(text)
	return nil
}

// maxLevel is the length of a TopicLevel in bytes, the longest name of a host.
const maxLevel = 253

var errLevelName = errors.New("must be 1 to 253 characters without /, + and #")

// MQTT configures the processes that pass messages of an MQTT broker to sources.
type MQTT struct {
	Database
	Queue
	Broker
	Log
	Stop
	Subscribe []Subscription `help:"Pass the messages of some topics to a source. Repeat it for more topics and sources." placeholder:"FILTER=SOURCE_ID" required:"" sep:"none"`
	Protocol  string         `default:"5" enum:"5,3" help:"Version of MQTT: 5, or 3 for 3.1.1." placeholder:"VERSION"`
	Share     TopicLevel     `help:"Share the messages with all processes that have the same group. Each needs a --replica of its own." implied:"shares none" placeholder:"GROUP"`
	Replica   TopicLevel     `help:"Name of this process among those that share messages. It must stay the same after a restart." implied:"the host name, with --share" placeholder:"NAME"`
	Retained  bool           `help:"Also take retained messages: the last ones from before the subscription."`
	OpsAddr   string         `default:"127.0.0.1:9085" help:"Address of health checks, metrics and profiles." placeholder:"HOST:PORT" setting:"" rule:"address"`
}

// Validate checks everything that can be checked without connecting.
func (c *MQTT) Validate() error { return validate(c) }

// MarshalZerologObject logs the configuration without its secrets.
func (c *MQTT) MarshalZerologObject(e *zerolog.Event) {
	logSettings(e, c)
	texts := make([]string, len(c.Subscribe))
	for i, s := range c.Subscribe {
		texts[i] = s.String()
	}
	e.Strs("subscribe", texts)
}
