package mqtt

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/url"
	"sync"
	"time"

	"github.com/mochi-mqtt/server/v2/packets"

	"roomsensor/internal/config"
	"roomsensor/internal/roomsensor"
)

const (
	// keepAlive is the interval of pings, unless the broker wants another one. A connection on which nothing arrives for
	// one and a half of it is lost.
	keepAlive = 30 * time.Second
	// ioTimeout limits a write, and each step of connecting.
	ioTimeout = 10 * time.Second
	// inFlight is how many messages the broker may send before the first one is acknowledged. It bounds the memory of a
	// session, and is the window of a team in the stream.
	inFlight = 64
	// maxPacket is the size of a packet up to which it is kept: the largest message that is stored, with its topic. The
	// rest of a larger one is dropped.
	maxPacket = roomsensor.MaxUploadBytes + 256<<10
)

// publication is a message as the broker sent it.
type publication struct {
	id       uint16 // 0 for one that needs no acknowledgement
	topic    string
	payload  []byte
	retained bool
}

// conn is a connection to a broker, with the subscriptions of a session. The broker has all messages that were not
// acknowledged on it, and sends them again on the next one.
type conn struct {
	net.Conn

	version  byte
	reader   *bufio.Reader
	received chan publication // in the order of the broker
	writing  sync.Mutex
	alive    context.Context //nolint:containedctx // It ends with the connection, with the cause.
	fail     context.CancelCauseFunc
	running  sync.WaitGroup
}

// dial connects to a broker, continues the session of a client and subscribes; it calls subscribed once the broker has
// agreed. Messages of the session may arrive before that. Its error, and later the end of the connection, is a
// *RefusedError if the broker refuses the client or a subscription.
func dial(ctx context.Context, c *Config, clientID string, filters []string, subscribed func()) (*conn, error) {
	connecting, cancel := context.WithTimeout(ctx, ioTimeout)
	defer cancel()
	u, err := c.Broker.URL()
	if err != nil {
		return nil, fmt.Errorf("reading the URL of the broker: %w", err)
	}
	tcp, err := open(connecting, &c.Broker, u)
	if err != nil {
		return nil, err
	}
	b := &conn{
		Conn: tcp, version: c.Version, reader: bufio.NewReader(tcp), received: make(chan publication, inFlight),
	}
	b.alive, b.fail = context.WithCancelCause(ctx)
	defer context.AfterFunc(connecting, func() { _ = tcp.Close() })()
	interval, err := b.connect(u, clientID)
	if err == nil {
		err = b.send(subscribePacket(c, filters))
	}
	if err != nil {
		b.end()
		return nil, err
	}
	b.running.Go(func() { b.fail(b.read(interval, subscribed)) })
	b.running.Go(func() { b.fail(b.ping(interval)) })
	return b, nil
}

// open opens the connection to a broker.
func open(ctx context.Context, broker *config.Broker, u *url.URL) (net.Conn, error) {
	var dialer interface {
		DialContext(ctx context.Context, network, address string) (net.Conn, error)
	} = &net.Dialer{}
	if u.Scheme == config.MQTTS {
		roots, err := config.CertPool(broker.MQTTCA)
		if err != nil {
			return nil, fmt.Errorf("reading the certificates of the broker: %w", err)
		}
		dialer = &tls.Dialer{Config: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
	}
	tcp, err := dialer.DialContext(ctx, "tcp", broker.Address())
	if err != nil {
		return nil, fmt.Errorf("connecting to the broker: %w", err)
	}
	return tcp, nil
}

// RefusedError says that the broker refuses a client or a subscription.
type RefusedError struct {
	What string
	Code byte // of MQTT
}

func (r *RefusedError) Error() string { return fmt.Sprintf("%s (code 0x%02x)", r.What, r.Code) }

// isLogin reports whether a code says that user and password are not allowed, in MQTT 3.1.1 or 5.
func isLogin(code byte) bool {
	return code == 4 || code == 5 || code == packets.ErrBadUsernameOrPassword.Code || code == packets.ErrNotAuthorized.Code
}

// connect continues the session of a client, or begins it. It returns the interval of pings.
func (b *conn) connect(u *url.URL, clientID string) (time.Duration, error) {
	password, hasPassword := u.User.Password()
	err := b.send(&packets.Packet{
		FixedHeader: packets.FixedHeader{Type: packets.Connect},
		Connect: packets.ConnectParams{
			ProtocolName: []byte("MQTT"), ClientIdentifier: clientID, Keepalive: uint16(keepAlive / time.Second),
			UsernameFlag: u.User != nil, Username: []byte(u.User.Username()),
			PasswordFlag: hasPassword, Password: []byte(password),
		},
		Properties: packets.Properties{
			SessionExpiryIntervalFlag: true, SessionExpiryInterval: math.MaxUint32, // It never expires.
			ReceiveMaximum: inFlight,
		},
	})
	if err != nil {
		return 0, err
	}
	answer, err := b.receive(ioTimeout)
	switch {
	case err != nil:
		return 0, err
	case answer.FixedHeader.Type != packets.Connack:
		return 0, fmt.Errorf("%w: packet %d", errUnexpected, answer.FixedHeader.Type)
	case answer.ReasonCode != 0 && isLogin(answer.ReasonCode):
		return 0, &RefusedError{"refuses the user or password in --mqtt-url (MQTT_URL)", answer.ReasonCode}
	case answer.ReasonCode != 0:
		return 0, &RefusedError{"refuses the connection", answer.ReasonCode}
	case answer.Properties.ServerKeepAliveFlag && answer.Properties.ServerKeepAlive > 0:
		return time.Duration(answer.Properties.ServerKeepAlive) * time.Second, nil
	}
	return keepAlive, nil
}

// errUnexpected means that the broker does not follow the protocol.
var errUnexpected = errors.New("the broker sent something unexpected")

func subscribePacket(c *Config, filters []string) *packets.Packet {
	p := &packets.Packet{FixedHeader: packets.FixedHeader{Type: packets.Subscribe, Qos: 1}, PacketID: 1}
	for _, filter := range filters {
		s := packets.Subscription{Filter: filter, Qos: 1}
		if !c.Retained {
			s.RetainHandling = 2 // MQTT 5 sends none.
		}
		p.Filters = append(p.Filters, s)
	}
	return p
}

// encoders write the packets that a subscriber sends.
var encoders = map[byte]func(*packets.Packet, *bytes.Buffer) error{
	packets.Connect: (*packets.Packet).ConnectEncode, packets.Subscribe: (*packets.Packet).SubscribeEncode,
	packets.Puback: (*packets.Packet).PubackEncode, packets.Pingreq: (*packets.Packet).PingreqEncode,
	packets.Disconnect: (*packets.Packet).DisconnectEncode,
}

// send writes packets at once.
func (b *conn) send(all ...*packets.Packet) error {
	var text bytes.Buffer
	for _, p := range all {
		p.ProtocolVersion = b.version
		if err := encoders[p.FixedHeader.Type](p, &text); err != nil {
			return fmt.Errorf("writing to the broker: %w", err)
		}
	}
	b.writing.Lock()
	defer b.writing.Unlock()
	if err := b.SetWriteDeadline(time.Now().Add(ioTimeout)); err != nil {
		return fmt.Errorf("writing to the broker: %w", err)
	}
	if _, err := b.Write(text.Bytes()); err != nil {
		return fmt.Errorf("writing to the broker: %w", err)
	}
	return nil
}

// decoders read the packets that a subscriber gets.
var decoders = map[byte]func(*packets.Packet, []byte) error{
	packets.Connack: (*packets.Packet).ConnackDecode, packets.Suback: (*packets.Packet).SubackDecode,
	packets.Publish: (*packets.Packet).PublishDecode, packets.Pingresp: (*packets.Packet).PingrespDecode,
	packets.Disconnect: (*packets.Packet).DisconnectDecode,
}

// receive reads a packet. The end of one that is larger than maxPacket is missing.
func (b *conn) receive(timeout time.Duration) (*packets.Packet, error) {
	if err := b.SetReadDeadline(time.Now().Add(timeout)); err != nil {
		return nil, fmt.Errorf("reading from the broker: %w", err)
	}
	first, err := b.reader.ReadByte()
	if err != nil {
		return nil, fmt.Errorf("reading from the broker: %w", err)
	}
	p := &packets.Packet{ProtocolVersion: b.version}
	if err := p.FixedHeader.Decode(first); err != nil {
		return nil, fmt.Errorf("reading from the broker: %w", err)
	}
	decode := decoders[p.FixedHeader.Type]
	if decode == nil {
		return nil, fmt.Errorf("%w: packet %d", errUnexpected, p.FixedHeader.Type)
	}
	if p.FixedHeader.Remaining, _, err = packets.DecodeLength(b.reader); err != nil {
		return nil, fmt.Errorf("reading from the broker: %w", err)
	}
	text := make([]byte, min(p.FixedHeader.Remaining, maxPacket))
	if _, err := io.ReadFull(b.reader, text); err != nil {
		return nil, fmt.Errorf("reading from the broker: %w", err)
	}
	if _, err := io.CopyN(io.Discard, b.reader, int64(p.FixedHeader.Remaining-len(text))); err != nil {
		return nil, fmt.Errorf("reading from the broker: %w", err)
	}
	if err := decode(p, text); err != nil {
		return nil, fmt.Errorf("reading from the broker: %w", err)
	}
	return p, nil
}

// read receives messages until the connection ends. While too many are not acknowledged, it leaves them to the broker.
func (b *conn) read(interval time.Duration, subscribed func()) error {
	for {
		p, err := b.receive(interval + interval/2)
		if err != nil {
			return err
		}
		switch p.FixedHeader.Type {
		case packets.Publish:
			select {
			case b.received <- publication{p.PacketID, p.TopicName, p.Payload, p.FixedHeader.Retain}:
			case <-b.alive.Done():
				return nil
			}
		case packets.Suback:
			if err := refusal(p.ReasonCodes); err != nil {
				return err
			}
			subscribed()
		case packets.Disconnect:
			what := "ended the connection"
			if p.ReasonCode == packets.ErrSessionTakenOver.Code {
				what += ", because another process has the same client id: give each a --replica of its own, with --share"
			}
			return &RefusedError{what, p.ReasonCode}
		}
	}
}

// refusal returns the error of the answer to a subscription. With less than QoS 1, the broker would not wait for
// acknowledgements.
func refusal(codes []byte) error {
	for _, code := range codes {
		if code != 1 {
			return &RefusedError{"refuses a subscription with QoS 1", code}
		}
	}
	return nil
}

// ping keeps the connection alive until it ends.
func (b *conn) ping(interval time.Duration) error {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-b.alive.Done():
			return nil
		case <-ticker.C:
			if err := b.send(&packets.Packet{FixedHeader: packets.FixedHeader{Type: packets.Pingreq}}); err != nil {
				return err
			}
		}
	}
}

// take waits for a message, and returns it with those that have arrived as well. It fails after the connection has
// ended: the broker sends again what is left.
func (b *conn) take() (batch []publication, err error) {
	select {
	case <-b.alive.Done():
		return nil, context.Cause(b.alive) //nolint:wrapcheck // It says what failed.
	case p := <-b.received:
		batch = append(batch, p)
	}
	for len(batch) < inFlight {
		select {
		case p := <-b.received:
			batch = append(batch, p)
		default:
			return batch, nil
		}
	}
	return batch, nil
}

// acknowledge tells the broker that messages are stored, in their order.
func (b *conn) acknowledge(batch []publication) error {
	var all []*packets.Packet
	for i := range batch {
		if batch[i].id != 0 {
			all = append(all, &packets.Packet{
				FixedHeader: packets.FixedHeader{Type: packets.Puback}, PacketID: batch[i].id,
			})
		}
	}
	return b.send(all...)
}

// end ends the connection. The broker keeps the session.
func (b *conn) end() {
	b.fail(net.ErrClosed)
	_ = b.send(&packets.Packet{FixedHeader: packets.FixedHeader{Type: packets.Disconnect}})
	_ = b.Close() // Nothing is lost: the broker sends again what was not acknowledged.
	b.running.Wait()
}
