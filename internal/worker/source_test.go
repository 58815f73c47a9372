package worker

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/queue"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/source"
	"roomsensor/test/conformance"
	"roomsensor/test/proctest"
)

// messageArrival is when the recorded messages of formats arrive.
var messageArrival = time.Date(2026, time.November, 20, 10, 0, 9, 0, time.UTC)

// recordedMessage is a recorded message of a format.
type recordedMessage struct{ format, file, text string }

func recordedMessages(t *testing.T) (all []recordedMessage) {
	t.Helper()
	files, err := filepath.Glob("../mapping/testdata/*/*")
	require.NoError(t, err)
	for _, file := range files {
		if strings.HasSuffix(file, ".want.json") {
			continue
		}
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		all = append(all, recordedMessage{filepath.Base(filepath.Dir(file)), file, string(text)})
	}
	require.Greater(t, len(all), 30)
	return all
}

// sourceFixture is a team with a source for each format.
type sourceFixture struct {
	*database
	sources map[string]roomsensor.Source // by format
}

// newSourceFixture makes sources whose mappings have some members in place of those of the format.
func newSourceFixture(t *testing.T, messages []recordedMessage, members string) *sourceFixture {
	t.Helper()
	f := &sourceFixture{newDatabase(t), map[string]roomsensor.Source{}}
	_, err := f.sql.Exec(t.Context(), "DELETE FROM device_hardware") // Messages have the units of the fixture.
	require.NoError(t, err)
	for _, m := range messages {
		if _, ok := f.sources[m.format]; ok {
			continue
		}
		s, err := f.CreateSource(t.Context(), roomsensor.Source{TeamID: f.ours, Name: m.format, Format: m.format, Mapping: members}, nil)
		require.NoError(t, err)
		f.sources[m.format] = s
	}
	return f
}

// deliver writes messages, one batch each.
func (f *sourceFixture) deliver(t *testing.T, messages []recordedMessage) (results []result) {
	t.Helper()
	for i, m := range messages {
		id := f.sources[m.format].ID
		arrival := roomsensor.Arrival{At: messageArrival.Add(time.Duration(i) * time.Second), Sequence: uint64(i + 1), Team: &f.ours, Source: &id}
		got, err := f.writer().write(t.Context(), []*delivery{parsed(arrival, "", []byte(m.text))})
		require.NoError(t, err, m.file)
		results = append(results, got...)
	}
	return results
}

// register registers all units of the messages.
func (f *sourceFixture) register(t *testing.T, messages []recordedMessage) {
	t.Helper()
	known := map[string]bool{}
	for _, m := range messages {
		mapping, err := source.Compile(m.format, "")
		require.NoError(t, err)
		for _, u := range source.Read(mapping, []byte(m.text), &roomsensor.Arrival{At: messageArrival}).Units {
			if known[roomsensor.NormalizeAlias(u.Name)] {
				continue
			}
			known[roomsensor.NormalizeAlias(u.Name)] = true
			_, err := f.CreateDevice(t.Context(), roomsensor.NewDevice{TeamID: f.ours, HardwareID: u.Name, DisplayName: &u.Name}, time.Now())
			require.NoError(t, err, u.Name)
		}
	}
}

// replayAll replays all rejects, oldest first.
func (f *sourceFixture) replayAll(t *testing.T) (rest int) {
	t.Helper()
	rejects, err := f.Rejects(t.Context(), roomsensor.RejectQuery{TeamID: &f.ours, Limit: 1000})
	require.NoError(t, err)
	for i := range rejects {
		reject, err := f.Reject(t.Context(), rejects[i].ID)
		require.NoError(t, err)
		left, err := Replay(t.Context(), f.Store, reject)
		require.NoError(t, err)
		rest += len(left)
	}
	return rest
}

// tables returns the readings and states of all devices, by name.
func (f *sourceFixture) tables(t *testing.T) []string {
	t.Helper()
	return slices.Concat(
		f.texts(t, `SELECT (d.display_name, r.bucket_at, r.measured_at, r.co2_ppm, r.temp_c, r.humidity_pct, r.lux, r.spl_db)::text
			FROM readings r JOIN devices d ON d.id = r.device_id ORDER BY d.display_name COLLATE "C", r.bucket_at`),
		f.texts(t, `SELECT (d.display_name, s.last_seen_at, s.rssi_dbm, s.signal_bars, s.signal_at, s.firmware_version, s.bucket_at, s.co2_ppm)::text
			FROM device_state s JOIN devices d ON d.id = s.device_id WHERE d.display_name IS NOT NULL ORDER BY d.display_name COLLATE "C"`))
}

// Messages that arrive before their mapping, units and aliases exist are stored later as if these had been there.
func TestSourceMappedLater(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "A10.7", "A10.8", "A11.1", "A12.2", "A12.3", "A12.4")
	messages := recordedMessages(t)
	before := newSourceFixture(t, messages, "")
	before.register(t, messages)
	before.deliver(t, messages)
	want := before.tables(t)
	require.Greater(t, len(want), 40)

	after := newSourceFixture(t, messages, `{"unit":"nowhere","ignore":[],"empty":"reject"}`)
	for _, r := range after.deliver(t, messages) {
		for _, reject := range r.rejects {
			require.Equal(t, roomsensor.ReasonNotMapped, reject.Reason)
		}
		require.Zero(t, r.resolved())
	}
	require.Positive(t, after.replayAll(t), "a replay with the same mapping stores nothing")
	for _, s := range after.sources {
		_, err := after.ChangeSource(t.Context(), after.ours, s.ID, roomsensor.SourceChange{Mapping: new("")})
		require.NoError(t, err)
	}
	require.Positive(t, after.replayAll(t), "the units are unknown")
	after.register(t, messages)
	after.replayAll(t)
	require.Equal(t, want, after.tables(t))
	versions := after.versions(t)
	after.replayAll(t)
	require.Equal(t, versions, after.versions(t), "a second replay changed something")
}

// Each unit of a message is resolved separately, and so is each line of line protocol.
func TestSourceUnits(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "A10.8", "A10.10", "A12.1", "A12.4")
	f := newSourceFixture(t, []recordedMessage{{format: "influx"}}, `{"unit":"tags.host"}`)
	_, err := f.CreateDevice(t.Context(), roomsensor.NewDevice{TeamID: f.ours, HardwareID: "AA-BB-CC-DD-EE-01"}, time.Now())
	require.NoError(t, err)
	_, err = f.CreateDevice(t.Context(), roomsensor.NewDevice{TeamID: f.theirs, HardwareID: "aabbccddee02"}, time.Now())
	require.NoError(t, err)
	results := f.deliver(t, []recordedMessage{{"influx", "", strings.Join([]string{
		"room,host=aabbccddee01 co2=640 1763632800000000000", "room,host=aabbccddee02 co2=641 1763632800000000000",
		"room,host=other co2=642 1763632800000000000", "room,host=aabb.ccdd.ee01 co2=643 1763633100000000000",
		"room,host=other co2=644 1763633100000000000", "this is no line", "room co2=645 1763633100000000000", "# a comment",
	}, "\n")}})
	require.Len(t, results, 1)
	require.Equal(t, 2, results[0].resolved())
	type row struct {
		Reason           roomsensor.Reason
		Unit, HardwareID string
		Payload          string
	}
	var got []row
	f.query(t, func(scan func(...any)) {
		var r row
		scan(&r.Reason, &r.Unit, &r.HardwareID, &r.Payload)
		got = append(got, r)
	}, `SELECT reason, coalesce(unit, ''), coalesce(hardware_id, ''), convert_from(payload, 'UTF8') FROM rejected_uploads ORDER BY reason, unit`)
	require.Equal(t, []row{
		{roomsensor.ReasonNotMapped, "", "", "this is no line\nroom co2=645 1763633100000000000"},
		{roomsensor.ReasonUnknownUnit, "aabbccddee02", "", "room,host=aabbccddee02 co2=641 1763632800000000000"},
		{roomsensor.ReasonUnknownUnit, "other", "", "room,host=other co2=642 1763632800000000000\nroom,host=other co2=644 1763633100000000000"},
	}, got)
	detail := f.texts(t, "SELECT detail FROM rejected_uploads WHERE reason = 'not_mapped'")[0]
	require.Contains(t, detail, "Line 6 cannot be parsed")
	require.Contains(t, detail, `"tags.host"`)
}

// A message of unknown units beyond a limit becomes few rejects, whose payloads together are bounded.
func TestSourceManyUnits(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "A10.10")
	f, store := inMemory()
	id := uuid.New()
	store.sources = map[uuid.UUID]roomsensor.Source{id: {ID: id, TeamID: f.ours, Format: "telegraf", Mapping: `{"unit":"tags.u"}`}}
	message := func(units int, padding string) *delivery {
		text := strings.Builder{}
		text.WriteString(`{"padding":"` + padding + `","metrics":[`)
		for i := range units {
			if i > 0 {
				text.WriteString(",")
			}
			text.WriteString(`{"name":"x","tags":{"u":"` + uuid.NewString() + `"},"fields":{"co2":640},"timestamp":1763632800}`)
		}
		text.WriteString("]}")
		return parsed(roomsensor.Arrival{At: messageArrival, Sequence: 1, Team: &f.ours, Source: &id}, "", []byte(text.String()))
	}
	for _, c := range []struct {
		units   int
		padding string
		most    int
	}{{3_000, "", maxUnitRejects + 1}, {100, strings.Repeat("x", 900_000), 6}} {
		d := message(c.units, c.padding)
		results, err := store.writer().write(t.Context(), []*delivery{d})
		require.NoError(t, err)
		bytes := 0
		for _, reject := range results[0].rejects {
			bytes += len(reject.Payload)
		}
		require.LessOrEqual(t, len(results[0].rejects), c.most)
		require.Less(t, bytes, maxUnitRejectBytes+3*roomsensor.MaxUploadBytes)
		last := results[0].rejects[len(results[0].rejects)-1]
		require.Nil(t, last.Unit)
		require.Equal(t, d.text, last.Payload)
	}
}

// A message of a source that is gone, of another team, or with a mapping that is not valid any more is not lost.
func TestSourceGone(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "A10.9")
	f := newSourceFixture(t, []recordedMessage{{format: "notehub"}}, "")
	text := []byte(`{"device":"` + f.first + `","when":1763632800,"body":{"co2":640}}`)
	s := f.sources["notehub"]
	require.NoError(t, f.DeleteSource(t.Context(), f.ours, s.ID))
	results, err := f.writer().write(t.Context(), []*delivery{parsed(roomsensor.Arrival{At: messageArrival, Sequence: 1, Team: &f.ours, Source: &s.ID}, "", text)})
	require.NoError(t, err)
	require.True(t, results[0].stored)
	require.Equal(t, text, results[0].rejects[0].Payload)
	require.Contains(t, results[0].rejects[0].Detail, "was deleted")

	model, store := inMemory()
	store.sources = map[uuid.UUID]roomsensor.Source{s.ID: {ID: s.ID, TeamID: model.ours, Format: "gone"}}
	for team, says := range map[uuid.UUID]string{model.theirs: "another team", model.ours: "the format is not known"} {
		results, err = store.writer().write(t.Context(), []*delivery{parsed(roomsensor.Arrival{At: messageArrival, Sequence: 1, Team: &team, Source: &s.ID}, "", text)})
		require.NoError(t, err)
		require.Equal(t, roomsensor.ReasonNotMapped, results[0].rejects[0].Reason)
		require.Contains(t, results[0].rejects[0].Detail, says)
	}
}

// A worker takes messages from the stream, counts what became of them, and stores those of a batch with many readings in
// several transactions.
func TestSourceWorker(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "A11.8")
	e, db := newEnv(t), newDatabase(t)
	s, err := db.CreateSource(t.Context(), roomsensor.Source{TeamID: db.ours, Name: "x", Format: "influx", Mapping: `{"unit":"tags.h"}`}, nil)
	require.NoError(t, err)
	_, err = db.CreateDevice(t.Context(), roomsensor.NewDevice{TeamID: db.ours, HardwareID: "room 1"}, time.Now())
	require.NoError(t, err)
	var lines strings.Builder
	const readings = 30_000
	for i := range readings {
		fmt.Fprintf(&lines, "r,h=room\\ 1 co2=64%d %d\n", i%2, 1_700_000_100+300*i)
	}
	e.publish(t, queue.Message{Team: &db.ours, Source: &s.ID, Precision: "s", Text: []byte(lines.String())},
		queue.Message{Team: &db.ours, Source: &s.ID, Precision: "s", Text: []byte("r,h=unknown co2=1 1700000100")})
	w, stop := e.start(t, db.Store)
	e.settle(t)
	stop()
	require.Equal(t, []string{"30000"}, db.texts(t, "SELECT count(*)::text FROM readings"))
	require.Equal(t, []string{"(2,30000,1,0)"}, db.texts(t, "SELECT (sum(messages), sum(stored), sum(rejected), sum(ignored))::text FROM source_hours"))
	newest, ok, err := db.NewestSourceMessage(t.Context(), db.ours, s.ID)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, "r,h=unknown co2=1 1700000100", string(newest.Text))
	require.Equal(t, "s", newest.Precision)
	require.Equal(t, []string{"s"}, db.texts(t, "SELECT precision FROM rejected_uploads"))
	require.Zero(t, proctest.Value(t, w.metrics.sourceIgnored))
	require.EqualValues(t, readings, proctest.Value(t, w.metrics.readings))
}
