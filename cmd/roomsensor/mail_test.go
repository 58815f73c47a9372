package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/queue"
	"roomsensor/internal/roomsensor"
)

// mail is a journey on which uploads are put into the stream as they are,
// whatever they hold, and read back from the API.
type mail struct {
	*journey
	js      jetstream.JetStream
	uploads jetstream.Stream
	team    string
	units   int
}

func newMail(t *testing.T) *mail {
	t.Helper()
	m := &mail{journey: setOut(t)}
	m.team = m.journey.team()
	m.key = m.id("key", "key", "create", "--team", m.team)
	conn, err := nats.Connect(m.environment["NATS_URL"])
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	m.js, err = jetstream.New(conn)
	require.NoError(t, err)
	m.uploads, err = m.js.Stream(t.Context(), queue.StreamName)
	require.NoError(t, err)
	return m
}

// place makes a device with a unit in it since ever, by SQL alone.
func (m *mail) place() (unit, device string) {
	m.t.Helper()
	m.units++
	unit = fmt.Sprint("dev:", m.units)
	require.NoError(m.t, m.conn.QueryRow(m.t.Context(), `WITH d AS (INSERT INTO devices (team_id, hardware_id) VALUES ($1, $2) RETURNING id)
		INSERT INTO device_hardware (hardware_id, device_id) SELECT $2, id FROM d RETURNING device_id::text`, m.team, unit).Scan(&device))
	return unit, device
}

// put gives the stream a message, and returns the instant at which it was
// stored, as the API prints it, and its sequence.
func (m *mail) put(unit, text string) (stored string, sequence uint64) {
	m.t.Helper()
	ack, err := m.js.Publish(m.t.Context(), "uploads."+unit, []byte(text))
	require.NoError(m.t, err)
	require.False(m.t, ack.Duplicate)
	msg, err := m.uploads.GetMsg(m.t.Context(), ack.Sequence)
	require.NoError(m.t, err)
	return roomsensor.FormatTime(msg.Time.Truncate(time.Microsecond)), ack.Sequence
}

// send puts the readings of a unit into the stream, and more fields before them.
func (m *mail) send(unit, more string, readings ...string) (stored string) {
	m.t.Helper()
	stored, _ = m.put(unit, fmt.Sprintf(`{"hardware_id":%q,%s"readings":[%s]}`, unit, more, strings.Join(readings, ",")))
	return stored
}

func (m *mail) settled() {
	m.t.Helper()
	m.settle(m.uploads)
}

// replayStream gives the whole stream to the workers again.
func (m *mail) replayStream() {
	m.t.Helper()
	r := m.run("stream", "replay")
	require.Equal(m.t, exitOK, r.code, r.err)
	m.settled()
}

// day is when the measurements of these tests were taken.
var day = time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -3)

// at is a reading at a time of day, with values.
func at(clock, values string) string {
	if values != "" {
		values = "," + values
	}
	return fmt.Sprintf(`{"measured_at":"%sT%sZ"%s}`, day.Format(time.DateOnly), clock, values)
}

// served are the readings of a device on that day, oldest first: the time of
// the bucket and the five values, a dash for null.
func (m *mail) served(device string) (lines []string) {
	m.t.Helper()
	var page struct {
		Data []map[string]json.RawMessage `json:"data"`
	}
	body := m.get(fmt.Sprintf("/devices/%s/readings?from=%s&to=%s", device, roomsensor.FormatTime(day), roomsensor.FormatTime(day.AddDate(0, 0, 1))))
	require.NoError(m.t, json.Unmarshal([]byte(body), &page))
	for _, reading := range page.Data {
		line := string(reading["bucket_at"][12:17])
		for _, metric := range roomsensor.Metrics {
			line += " " + strings.Replace(string(reading[metric.String()]), "null", "-", 1)
		}
		lines = append([]string{line}, lines...)
	}
	return lines
}

// rejects are the rejects of a unit: reasons and what was kept.
func (m *mail) rejects(unit string) map[string]string {
	m.t.Helper()
	kept := map[string]string{}
	for _, reject := range m.data("rejects", "list", "--hardware-id", unit) {
		reason := reject["reason"].(string)
		require.NotContains(m.t, kept, reason, "one reject an upload and a reason")
		kept[reason], _ = m.do("rejects", "show", reject["id"].(string))["payload"].(string)
	}
	return kept
}
