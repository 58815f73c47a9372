package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/queue"
)

// poison is a kind of bad upload, as its unit would send it.
type poison struct {
	name, unit, text string
	reason           string
	says             string // to the operator
	lands            int    // readings of it that are good
}

// good is a reading that no other upload has.
func good(n int) string {
	at := firstBucket.Add(time.Duration(n) * 5 * time.Minute).Format(time.RFC3339)
	return fmt.Sprintf(`{"measured_at":%q,"co2_ppm":%d}`, at, (n+1000)%1000)
}

func uploadOf(unit string, readings ...string) string {
	return fmt.Sprintf(`{"hardware_id":%q,"readings":[%s]}`, unit, strings.Join(readings, ","))
}

// poisons are the ways in which uploads go bad. n sets the good readings beside the bad ones apart.
func poisons(n int) []poison {
	reading := good(-1 - n)
	ahead := time.Now().UTC().Add(time.Hour).Format(time.RFC3339)
	return []poison{
		{"not JSON", "dev:1", "hello", "not_parsable", "It is no valid JSON, at byte 1.", 0},
		{"wrong types", "dev:1", `{"hardware_id":"dev:1","readings":{}}`, "not_parsable", "readings is missing or is no array.", 0},
		{"NaN", "dev:1", uploadOf("dev:1", `{"measured_at":"2020-01-01T00:00:00Z","temp_c":NaN}`), "not_parsable", "It is no valid JSON, at byte 83.", 0},
		{
			"1e400", "dev:1", uploadOf("dev:1", strings.Replace(reading, "{", `{"temp_c":1e400,`, 1)), "value_invalid",
			"temp_c outside the plausible range or no number, and stored as null, in 1 of 1 readings.", 1,
		},
		{
			"unknown unit", fmt.Sprint("dev:9", n), uploadOf(fmt.Sprint("dev:9", n), reading), "unknown_unit",
			"No device of the credential's team ever had the unit", 0,
		},
		{"unit of another team", "dev:2", uploadOf("dev:2", reading), "unknown_unit", "No device of the credential's team ever had the unit", 0},
		{"unit in no device at that time", "dev:3", uploadOf("dev:3", reading), "not_installed", "The unit sat in no device at measured_at of 1 of 1 readings.", 0},
		{
			"year 1970", "dev:4", uploadOf("dev:4", reading, `{"measured_at":"1970-01-01T00:00:07Z"}`), "measured_at_out_of_range",
			"measured_at lies before 2015 or more than 10 minutes past the arrival in 1 of 2 readings.", 1,
		},
		{
			"far future", "dev:5", uploadOf("dev:5", fmt.Sprintf(`{"measured_at":%q}`, ahead), reading), "measured_at_out_of_range",
			"more than 10 minutes past the arrival in 1 of 2 readings.", 1,
		},
		{
			"off range", "dev:6", uploadOf("dev:6", strings.Replace(reading, "{", `{"humidity_pct":100.5,"spl_db":-1,`, 1)), "value_invalid",
			"humidity_pct, spl_db outside the plausible range or no number, and stored as null, in 1 of 1 readings.", 1,
		},
		{
			"10,001 readings", "dev:1", uploadOf("dev:1", strings.Repeat("{},", 10_000)+"{}"), "too_many_readings",
			"It has 10001 readings; at most 10000 are allowed.", 0,
		},
		{
			"duplicate keys", "dev:1", uploadOf("dev:1", `{"measured_at":"2020-01-01T00:00:00Z","lux":1,"lux":2}`), "not_parsable",
			`It names the member "lux" twice`, 0,
		},
	}
}

// Every kind of poison, one to a hundred good uploads: the good readings land, each bad upload is a reject that says
// what to do, and the queue goes on. What an operator can mend lands when it is replayed.
func TestPoisonAmongGoodUploads(t *testing.T) {
	t.Parallel()
	const doses, goodPerBad = 2, 100
	p := newPlant(t, "dev:1", "dev:4", "dev:5", "dev:6")
	team, other := p.teams[0], p.team()
	p.device(other, "dev:2")
	p.run("device", "remove-hardware", p.device(team, "dev:3"), "--at", "2016-01-01T00:00:00Z")

	messages, kinds := p.mixture(team, doses, goodPerBad)
	p.publish(messages)
	p.start("ingest", "--no-receiver")
	uploads := p.awaitSettled()
	consumer, err := uploads.Consumer(t.Context(), queue.ConsumerName)
	require.NoError(t, err)
	require.Equal(t, uint64(len(messages)), consumer.CachedInfo().Delivered.Consumer, "none came again")

	lands := (doses*len(kinds) + 1) * goodPerBad
	reasons := map[string]int{}
	for _, k := range kinds {
		lands += doses * k.lands
		reasons[k.reason] += doses
	}
	require.Equal(t, lands, p.count("SELECT count(*) FROM readings"))
	for reason, n := range reasons {
		require.Len(t, p.data("rejects", "list", "--reason", reason), n, reason)
	}
	p.requireToldApart(messages, kinds)
	p.requireMendable(team, other, doses)
}

// mixture is poison among good uploads, as the receiver would pass them on.
func (p *plant) mixture(team string, doses, goodPerBad int) (messages []queue.Message, kinds []poison) {
	id := uuid.MustParse(team)
	n := 0
	add := func(unit, text string) {
		messages = append(messages, queue.Message{HardwareID: unit, Team: &id, Text: []byte(text)})
	}
	goods := func() {
		for range goodPerBad {
			add("dev:1", uploadOf("dev:1", good(n)))
			n++
		}
	}
	for dose := range doses {
		kinds = poisons(dose)
		for _, k := range kinds {
			goods()
			add(k.unit, k.text)
		}
	}
	goods()
	return messages, kinds
}

func (p *plant) publish(messages []queue.Message) {
	p.t.Helper()
	nc, err := queue.Connect(p.nats.URL, p.t.Name(), zerolog.Nop())
	require.NoError(p.t, err)
	defer nc.Close()
	q, err := queue.New(nc, queue.Config{Replicas: 1, MaxBytes: 1 << 30})
	require.NoError(p.t, err)
	ctx, cancel := context.WithTimeout(p.t.Context(), 3*bearable)
	defer cancel()
	require.Eventually(p.t, nc.IsConnected, bearable, time.Millisecond)
	require.NoError(p.t, q.Declare(ctx))
	for part := range slices.Chunk(messages, 64) { // A busy disk confirms that many in time.
		_, err = q.Publish(ctx, part)
		require.NoError(p.t, err)
	}
}

// requireToldApart holds each reject of the last dose to what it must say and to what it must keep.
func (p *plant) requireToldApart(messages []queue.Message, kinds []poison) {
	p.t.Helper()
	bySequence := map[int]map[string]any{}
	for _, reject := range p.data("rejects", "list") {
		bySequence[int(reject["stream_sequence"].(float64))] = reject
	}
	for sequence, message := range messages {
		reject, bad := bySequence[sequence+1]
		for _, k := range kinds {
			if k.unit != message.HardwareID || k.text != string(message.Text) {
				continue
			}
			require.True(p.t, bad, k.name)
			require.Equal(p.t, k.reason, reject["reason"], k.name)
			require.Contains(p.t, reject["detail"], k.says, k.name)
			require.Equal(p.t, message.Team.String(), reject["team_id"], k.name)
			require.Contains(p.t, p.data("rejects", "list", "--hardware-id", k.unit, "--reason", k.reason), reject, k.name)
			if k.lands == 0 {
				require.Equal(p.t, k.text, p.do("rejects", "show", reject["id"].(string))["payload"], k.name)
			}
		}
	}
}

// requireMendable registers what was unknown and replays it.
func (p *plant) requireMendable(team, other string, doses int) {
	p.t.Helper()
	for dose := range doses {
		p.device(team, fmt.Sprint("dev:9", dose))
	}
	before := p.count("SELECT count(*) FROM readings")
	r := p.run("rejects", "replay", "--reason", "unknown_unit")
	require.Equal(p.t, fmt.Sprintf("{\"replayed\":%d}\n", doses), r.out, "those of the other team's unit stay: %s", r.err)
	require.Equal(p.t, before+doses, p.count("SELECT count(*) FROM readings"))
	require.Zero(p.t, p.count("SELECT count(*) FROM readings r JOIN devices d ON d.id = r.device_id WHERE d.team_id = $1", other))
	for _, reject := range p.data("rejects", "list") {
		require.Equal(p.t, reject["reason"] == "unknown_unit", reject["replayed_at"] != nil, reject)
	}
	require.Equal(p.t, "{\"replayed\":2}\n", p.run("rejects", "replay", "--reason", "unknown_unit").out, "again, and the same")
	require.Equal(p.t, before+doses, p.count("SELECT count(*) FROM readings"))
}
