// Package mqtt passes messages of an MQTT broker to sources (A14). It needs the queue and the broker: while the
// database is unavailable, it continues with the sources that it knows.
//
//	mqtt.go     Bridge: configuration, Run, the state of sources, metrics
//	session.go  the session of one source: connect, publish, acknowledge
//	message.go  what the mapping of a source reads; filters of topics
//	conn.go     one connection to a broker: the packets of MQTT 3.1.1 and 5 that a subscriber needs
package mqtt
