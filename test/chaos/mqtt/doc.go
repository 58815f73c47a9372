// Package mqtt is a trial of MQTT: while units publish with QoS 1 to mosquitto, it kills roomsensor mqtt and the broker
// and cuts the connection between them, in a row. Everything that the broker has acknowledged must be stored once.
package mqtt
