package main

import (
	"encoding/base64"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/cli"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store"
)

// reject stores a reject, as a worker does.
func (o *operator) reject(at string, sequence uint64, team *uuid.UUID, unit string, reason roomsensor.Reason, payload string) {
	o.t.Helper()
	s, err := store.Open(o.t.Context(), o.environment["DATABASE_URL"], store.Ingest)
	require.NoError(o.t, err)
	defer s.Close()
	arrived, ok := roomsensor.ParseTime(at)
	require.True(o.t, ok)
	r := roomsensor.Reject{
		Arrival: roomsensor.Arrival{At: arrived, Sequence: sequence, Team: team},
		Reason:  reason, Detail: "It cannot be stored.", Payload: []byte(payload),
	}
	if unit != "" {
		r.HardwareID = &unit
	}
	_, err = s.WriteBatch(o.t.Context(), roomsensor.Batch{Rejects: []roomsensor.Reject{r}})
	require.NoError(o.t, err)
}

func TestRejects(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	team := o.team()
	teamID := uuid.MustParse(team)
	require.Empty(t, o.data("rejects", "list"))
	o.reject("2026-01-01T00:00:00.5Z", 1, nil, "", roomsensor.ReasonNotParsable, "\xff\x00")
	const whole = `{"hardware_id":"dev:1"}`
	o.reject("2026-01-02T00:00:00Z", 2, &teamID, "dev:1", roomsensor.ReasonUnknownUnit, whole)
	o.reject("2026-01-03T00:00:00Z", 3, &teamID, "dev:2", roomsensor.ReasonUnknownUnit, "")

	list := o.data("rejects", "list")
	require.Len(t, list, 3)
	require.Equal(t, map[string]any{
		"id": list[2]["id"], "received_at": "2026-01-01T00:00:00.5Z", "team_id": nil, "hardware_id": nil, "unit": nil, "source_id": nil,
		"reason": "not_parsable", "detail": "It cannot be stored.", "stream_sequence": 1.0, "replayed_at": nil,
	}, list[2])
	require.Equal(t, team, list[1]["team_id"])
	require.Equal(t, "dev:2", list[0]["hardware_id"])

	require.Equal(t, list[:1], o.data("rejects", "list", "--limit", "1"))
	require.Equal(t, list[:2], o.data("rejects", "list", "--team", team))
	require.Equal(t, list[2:], o.data("rejects", "list", "--reason", "not_parsable"))
	require.Equal(t, list[1:2], o.data("rejects", "list", "--hardware-id", "dev:1", "--reason", "unknown_unit"))
	require.Equal(t, list[:2], o.data("rejects", "list", "--since", "2026-01-02T00:00:00Z"))
	require.Empty(t, o.data("rejects", "list", "--team", unknown))

	id := func(i int) string { return list[i]["id"].(string) }
	text := o.do("rejects", "show", id(1))
	require.Equal(t, whole, text["payload"]) //nolint:testifylint // The text itself, to the byte.
	require.NotContains(t, text, "payload_base64")
	delete(text, "payload")
	require.Equal(t, list[1], text, "the same beside the payload")
	raw := o.do("rejects", "show", id(2))
	require.Equal(t, base64.StdEncoding.EncodeToString([]byte("\xff\x00")), raw["payload_base64"])
	require.NotContains(t, raw, "payload")
	nothing := o.do("rejects", "show", id(0))
	require.Contains(t, nothing, "payload")
	require.Empty(t, nothing["payload"])

	o.fails(cli.ExitFailure, "There is no reject "+unknown, "rejects", "show", unknown)
}

func TestRejectsReplay(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	team := o.team()
	upload := `{"hardware_id":"dev:%d","readings":[{"measured_at":"2025-12-31T23:55:01Z","co2_ppm":600}]}`
	for n := range 3 {
		o.reject(fmt.Sprintf("2026-01-01T00:00:0%dZ", n), uint64(n+1), nil, fmt.Sprintf("dev:%d", n),
			roomsensor.ReasonUnknownUnit, fmt.Sprintf(upload, n))
	}
	list := o.data("rejects", "list")
	id := func(n int) string { return list[2-n]["id"].(string) }
	device := o.device(team, "dev:0")
	o.device(team, "dev:1")

	r := o.run("rejects", "replay", id(0), id(2), id(0))
	require.Equal(t, cli.ExitOK, r.code, r.err)
	require.Equal(t, "{\"replayed\":1}\n", r.out)
	require.Contains(t, r.err, "Reject "+id(2)+" was not fully stored: unknown_unit: No device")
	after := o.data("rejects", "list")
	require.Len(t, after, 3, "a replay that fails again makes no second reject")
	require.NotNil(t, after[2]["replayed_at"])
	require.NotNil(t, after[0]["replayed_at"])
	require.Nil(t, after[1]["replayed_at"])
	require.Equal(t, "2026-01-01T00:00:00Z", o.lastSeen(team, device), "the first arrival counts")

	r = o.run("rejects", "replay", "--reason", "unknown_unit")
	require.Equal(t, "{\"replayed\":2}\n", r.out)
	require.Equal(t, "{\"replayed\":0}\n", o.run("rejects", "replay", "--reason", "not_parsable").out)
	require.Equal(t, "{\"replayed\":0}\n", o.run("rejects", "replay", id(0), "--reason", "not_parsable").out)
	require.Equal(t, "{\"replayed\":1}\n", o.run("rejects", "replay", id(0), id(2), "--reason", "unknown_unit").out)

	replayed := o.data("rejects", "list")[1]["replayed_at"]
	o.fails(cli.ExitFailure, "There is no reject "+unknown, "rejects", "replay", id(1), unknown)
	require.Equal(t, replayed, o.data("rejects", "list")[1]["replayed_at"], "nothing is replayed when an id is unknown")

	s, err := store.Open(t.Context(), o.environment["DATABASE_URL"], store.API)
	require.NoError(t, err)
	defer s.Close()
	readings := 0
	err = s.EachReading(t.Context(), uuid.MustParse(team), uuid.MustParse(device), roomsensor.ReadingQuery{
		Window: roomsensor.Window{From: time.Unix(0, 0), To: roomsensor.Forever}, Limit: 10,
	}, func(*roomsensor.Reading) { readings++ })
	require.NoError(t, err)
	require.Equal(t, 1, readings)
}

func (o *operator) lastSeen(team, device string) any {
	o.t.Helper()
	for _, d := range o.data("device", "list", "--team", team) {
		if d["device_id"] == device {
			return d["last_seen_at"]
		}
	}
	return nil
}
