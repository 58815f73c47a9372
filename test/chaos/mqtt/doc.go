// Package mqtt is a trial of MQTT: while units publish with QoS 1 to mosquitto, it kills roomsensor mqtt and the broker
// and cuts the connection between them, in a row. Everything that the broker has acknowledged must be stored once.
//
// mosquitto (2.0.11 and 2.0.21) acknowledges a message before it writes it to its disk, and with autosave_on_changes
// writes a message that is on its way to a client only with a later change: a SIGKILL loses both. So the trial lets it
// write all before each SIGKILL. What remains is the loss of the broker itself, which A14.3 excludes.
package mqtt
