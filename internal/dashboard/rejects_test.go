package dashboard_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store"
)

// addReject stores a reject of a team and returns its id.
func (e *env) addReject(t testing.TB, team uuid.UUID, sequence int, unit string, reason roomsensor.Reason, payload string) (id uuid.UUID) {
	t.Helper()
	require.NoError(t, e.sql.QueryRow(t.Context(), `INSERT INTO rejected_uploads
			(received_at, stream_sequence, reason, detail, team_id, hardware_id, unit, payload)
			VALUES ($1, $2, $3, 'Detail <i>.', $4, nullif($5, ''), nullif($5, ''), $6) RETURNING id`,
		e.now.Add(time.Duration(sequence)*time.Second-time.Hour), sequence, reason, team, unit, []byte(payload)).Scan(&id))
	return id
}

// uploadOf returns the payload of an upload with one reading an hour before the time of the env.
func (e *env) uploadOf(unit string) string {
	return fmt.Sprintf(`{"hardware_id":%q,"readings":[{"measured_at":%q,"co2_ppm":612}]}`, unit, roomsensor.FormatTime(e.now.Add(-2*time.Hour)))
}

func TestRejects(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	p := e.signIn(t, e.team, roomsensor.Admin)
	require.Contains(t, p.get(t, e.path("/rejects")).text, "There are no rejects")
	for i := range 60 {
		e.addReject(t, e.team, i, "dev:1", roomsensor.ReasonUnknownUnit, e.uploadOf("dev:1"))
	}
	e.addReject(t, e.team, 100, "", roomsensor.ReasonNotParsable, "<script>")
	e.addReject(t, e.addTeam(t, "Other"), 101, "dev:2", roomsensor.ReasonNoMetric, "theirs")

	page := p.get(t, e.path("/rejects"))
	require.Equal(t, 2, page.find("tbody tr").Length(), page.text)
	require.Contains(t, page.text, roomsensor.ReasonUnknownUnit.Advice().Fix)
	require.NotContains(t, page.text, "dev:2")
	require.Equal(t, 1, page.find("main form[method=post]").Length(), "a replay of what cannot be parsed does not help")
	require.Equal(t, 1, p.get(t, e.path("/rejects?reason=not_parsable")).find("tbody tr").Length())

	list := p.get(t, e.path("/rejects/list?reason=unknown_unit&unit=dev:1"))
	require.Equal(t, 50, list.find("tbody tr").Length())
	require.Contains(t, list.text, "Detail <i>.")
	next := list.find("a.button").AttrOr("href", "")
	require.Equal(t, 10, p.get(t, next).find("tbody tr").Length())
}

func TestRejectPayload(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	p := e.signIn(t, e.team, roomsensor.Admin)
	long := strings.Repeat("é", 16<<10)
	for i, c := range []struct{ payload, shown string }{
		{`<script>alert(1)</script>`, `<script>alert(1)</script>`},
		{"\xff\x00", "/wA="},
		{"a\x00b", "YQBi"},
		{long, long[:16<<10]},
	} {
		id := e.addReject(t, e.team, i, "", roomsensor.ReasonNotParsable, c.payload)
		page := p.get(t, e.path("/rejects/"+id.String()))
		require.Equal(t, http.StatusOK, page.status)
		require.Equal(t, c.shown, page.find("pre").Text())
		require.Zero(t, page.find("main script").Length())
		file := p.get(t, e.path("/rejects/"+id.String()+"/payload"))
		require.Equal(t, c.payload, file.body)
		require.Equal(t, "application/octet-stream", file.header.Get("Content-Type"))
		require.True(t, strings.HasPrefix(file.header.Get("Content-Disposition"), "attachment"))
	}
}

func TestRegisterAndReplay(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	p := e.signIn(t, e.team, roomsensor.Admin)
	for i := range 3 {
		e.addReject(t, e.team, i, "dev:7", roomsensor.ReasonUnknownUnit, e.uploadOf("dev:7"))
	}
	late := strings.Replace(e.uploadOf("dev:7"), roomsensor.FormatTime(e.now.Add(-2*time.Hour)), "2016-01-01T00:00:00Z", 1)
	group := url.Values{"reason": {"unknown_unit"}, "unit": {"dev:7"}}
	early := p.post(t, e.path("/rejects/replay"), group)
	require.Contains(t, early.text, "0 rejects stored in full. 3 rejects not, or only in part")
	require.Contains(t, early.text, "unknown_unit (3 rejects)")

	report := p.get(t, e.path("/rejects?unit=7"))
	require.Contains(t, report.text, "Your team never had it")
	require.Equal(t, 2, report.find(`a[href*="/devices/new?unit="]`).Length())
	form := url.Values{"unit": {"dev:7"}, "name": {"Hall"}, "tags": {"building=gym\nfloor = 2"}, "at": {"2026-11-01T08:00"}}
	registered := p.post(t, e.path("/devices/new"), form)
	after := p.follow(t, registered)
	require.Contains(t, after.text, "It is in Hall since")
	require.Zero(t, after.find(`a[href*="/devices/new?unit="]`).Length(), "it is registered")
	require.Contains(t, after.find(".advice").Text(), "all of it was replayed")
	var tags string
	require.NoError(t, e.sql.QueryRow(t.Context(), "SELECT metadata::text FROM devices WHERE team_id = $1", e.team).Scan(&tags))
	require.JSONEq(t, `{"building":"gym","floor":"2"}`, tags)

	e.addReject(t, e.team, 9, "dev:7", roomsensor.ReasonUnknownUnit, late)
	require.Contains(t, p.get(t, e.path("/rejects")).find(".advice").Text(), "The unit is in Hall now. Replay what arrived before.")
	replayed := p.post(t, e.path("/rejects/replay"), group)
	require.Contains(t, replayed.text, "3 rejects stored in full. 1 reject not, or only in part")
	require.Contains(t, replayed.text, "not_installed (1 reject)")
	var readings int
	require.NoError(t, e.sql.QueryRow(t.Context(), "SELECT count(*) FROM readings").Scan(&readings))
	require.Equal(t, 1, readings, "the three uploads have the same reading")

	taken := p.post(t, e.path("/devices/new"), form)
	require.Equal(t, http.StatusUnprocessableEntity, taken.status)
	require.Contains(t, taken.text, "cannot be registered")
	for field, value := range map[string]string{"tags": "gym", "at": "2027-01-01T00:00", "name": strings.Repeat("x", 201), "unit": "7"} {
		invalid := url.Values{"unit": {"dev:8"}, field: {value}}
		answer := p.post(t, e.path("/devices/new"), invalid)
		require.Equal(t, http.StatusUnprocessableEntity, answer.status, field)
		require.Equal(t, 1, answer.find(".field .error").Length(), field)
	}
}

// TestReplayInParts checks that a request replays 200 rejects at most, and that the next one continues after them.
func TestReplayInParts(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	p := e.signIn(t, e.team, roomsensor.Admin)
	_, err := e.store.RegisterUnit(t.Context(), roomsensor.NewDevice{TeamID: e.team, HardwareID: "dev:7"}, e.now)
	require.NoError(t, err)
	for i := range 203 {
		e.addReject(t, e.team, i, "dev:7", roomsensor.ReasonUnknownUnit, e.uploadOf("dev:7"))
	}
	form := url.Values{"reason": {"unknown_unit"}, "unit": {"dev:7"}}
	stored := 0
	for requests := 0; ; requests++ {
		require.Less(t, requests, 203)
		page := p.post(t, e.path("/rejects/replay"), form)
		var n int
		_, err := fmt.Sscanf(page.find(".notice").Text(), "%d", &n)
		require.NoError(t, err)
		require.LessOrEqual(t, n, 200)
		stored += n
		after, more := page.find("input[name=after]").Attr("value")
		if !more {
			break
		}
		form.Set("after", after)
	}
	require.Equal(t, 203, stored)
}

// cleanedStore deletes the first reject of a group after it listed the group, as a worker may.
type cleanedStore struct {
	*store.Store

	delete func(rejectID uuid.UUID)
}

func (c *cleanedStore) RejectsOfGroup(
	ctx context.Context, teamID uuid.UUID, p roomsensor.RejectGroupPage,
) ([]roomsensor.RejectPosition, error) {
	found, err := c.Store.RejectsOfGroup(ctx, teamID, p)
	if len(found) > 0 {
		c.delete(found[0].ID)
	}
	return found, err
}

// TestReplayOfDeletedReject checks that a reject that is deleted during a replay does not end it.
func TestReplayOfDeletedReject(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	p := e.signIn(t, e.team, roomsensor.Admin)
	_, err := e.store.RegisterUnit(t.Context(), roomsensor.NewDevice{TeamID: e.team, HardwareID: "dev:7"}, e.now)
	require.NoError(t, err)
	for i := range 2 {
		e.addReject(t, e.team, i, "dev:7", roomsensor.ReasonUnknownUnit, e.uploadOf("dev:7"))
	}
	p.replica(t, &cleanedStore{e.store, func(id uuid.UUID) {
		e.exec(t, "DELETE FROM rejected_uploads WHERE id = $1", id)
	}}, nil)
	answer := p.post(t, e.path("/rejects/replay"), url.Values{"reason": {"unknown_unit"}, "unit": {"dev:7"}})
	require.Equal(t, http.StatusOK, answer.status, answer.text)
	require.Contains(t, answer.text, "1 reject stored in full.")
}

// TestUnitReport checks what the search for a unit answers, and that a unit of another team looks as if nobody had it.
func TestUnitReport(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	p := e.signIn(t, e.team, roomsensor.Admin)
	other := e.addTeam(t, "Other")
	_, err := e.store.RegisterUnit(t.Context(), roomsensor.NewDevice{TeamID: other, HardwareID: "dev:5", DisplayName: new("Theirs")}, e.now)
	require.NoError(t, err)
	_, err = e.store.RegisterUnit(t.Context(), roomsensor.NewDevice{TeamID: e.team, HardwareID: "dev:6", DisplayName: new("Ours")}, e.now)
	require.NoError(t, err)
	theirs, nobody := p.get(t, e.path("/rejects?unit=dev:5")).text, p.get(t, e.path("/rejects?unit=dev:9")).text
	require.Equal(t, nobody, strings.ReplaceAll(theirs, "dev:5", "dev:9"))
	require.Contains(t, nobody, "It has no rejects. No upload of it arrived")
	ours := p.get(t, e.path("/rejects?unit=dev:6"))
	require.Contains(t, ours.text, "It is in Ours")
	require.Contains(t, ours.text, "The device has never reported. Check that the unit has power")
	e.addReject(t, e.team, 1, "dev:6", roomsensor.ReasonUnknownUnit, e.uploadOf("dev:6"))
	waiting := p.get(t, e.path("/rejects?unit=dev:6")).text
	require.Contains(t, waiting, "Nothing of it is stored yet.")
	require.NotContains(t, waiting, "power")
	require.Contains(t, p.get(t, e.path("/rejects?unit=dev:6&reason=no_metric")).text,
		"Its newest reject arrived 59 min ago. Show all its rejects")
	e.exec(t, "UPDATE device_state SET last_seen_at = $1", e.now.Add(-time.Minute))
	require.Contains(t, p.get(t, e.path("/rejects?unit=dev:6")).text, "The device last reported 1 min ago.")
	invalid := p.get(t, e.path("/rejects?unit=dev:x"))
	require.Equal(t, http.StatusUnprocessableEntity, invalid.status)
	require.Contains(t, invalid.text, "A unit is dev:")
}

func TestRejectsOfOtherTeams(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	p := e.signIn(t, e.team, roomsensor.Admin)
	id := e.addReject(t, e.addTeam(t, "Other"), 1, "dev:7", roomsensor.ReasonUnknownUnit, e.uploadOf("dev:7"))
	path := e.path("/rejects/" + id.String())
	require.Equal(t, http.StatusNotFound, p.get(t, path).status)
	require.Equal(t, http.StatusNotFound, p.get(t, path+"/payload").status)
	require.Equal(t, http.StatusNotFound, p.post(t, path+"/replay", nil).status)
	answer := p.post(t, e.path("/rejects/replay"), url.Values{"reason": {"unknown_unit"}, "unit": {"dev:7"}})
	require.Contains(t, answer.text, "0 rejects stored in full")
	var replayed bool
	require.NoError(t, e.sql.QueryRow(t.Context(), "SELECT bool_or(replayed_at IS NOT NULL) FROM rejected_uploads").Scan(&replayed))
	require.False(t, replayed)
}

func TestRejectReplay(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	p := e.signIn(t, e.team, roomsensor.Admin)
	_, err := e.store.RegisterUnit(t.Context(), roomsensor.NewDevice{TeamID: e.team, HardwareID: "dev:7"}, e.now)
	require.NoError(t, err)
	id := e.addReject(t, e.team, 1, "dev:7", roomsensor.ReasonUnknownUnit, e.uploadOf("dev:7"))
	answer := p.post(t, e.path("/rejects/"+id.String()+"/replay"), nil)
	require.Contains(t, answer.text, "1 reject stored in full.")
	require.NotContains(t, p.get(t, e.path("/rejects/"+id.String())).text, "Last replay none")
}

// TestAddDevice checks that an admin adds a device whose unit has not sent anything yet, and what its page says then, and
// after the unit was replaced.
func TestAddDevice(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	p := e.signIn(t, e.team, roomsensor.Admin)
	require.Contains(t, p.get(t, e.path("/devices/new")).text, "Add a device")
	added := p.follow(t, p.post(t, e.path("/devices/new"), url.Values{"unit": {"12"}, "name": {"Dorm 1"}}))
	require.Contains(t, added.text, "The device was added. Its readings appear here once unit dev:12 uploads")
	require.Equal(t, "Dorm 1", added.find("h1").Text())
	e.exec(t, `UPDATE device_state SET last_seen_at = $1, rssi_dbm = -101, firmware_version = 'v1'`, e.now.Add(-time.Hour))
	replaced := p.follow(t, p.post(t, e.path("/devices/"+added.deviceID()+"/hardware"), url.Values{"hardware_id": {"dev:13"}}))
	require.Contains(t, replaced.find(".state").Text(), "Waiting for the first upload of dev:13, installed just now")
	require.NotContains(t, replaced.find(".facts").Text(), "-101", "that was the signal of the old unit")
	require.NotContains(t, replaced.find(".facts").Text(), "v1")
}

// deviceID returns the id of the device of a page.
func (p *page) deviceID() string {
	action := p.find(`form[action$="/hardware"]`).AttrOr("action", "")
	return strings.Split(action, "/")[4]
}
