package api_test

import (
	"encoding/binary"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"roomsensor/internal/roomsensor"
)

// stage is a fixture with two replicas on which scenes play, each with a team
// of its own.
type stage struct {
	*fixture
	replicas [2]*replica
	made     uint32 // ids so far
}

func setupStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{fixture: setup(t)}
	s.replicas = [2]*replica{s.replica, s.serve(t, backend{openStore(t, s.url)}, nil)}
	return s
}

// id is a new one, whose place among the others is drawn.
func (s *stage) id(rt *rapid.T) uuid.UUID {
	s.made++
	id := number(rapid.Byte().Draw(rt, "id"), 0)
	binary.BigEndian.PutUint32(id[12:], s.made)
	return id
}

// scene is a team whose lists are read while they change.
type scene struct {
	*stage
	t      *testing.T
	rt     *rapid.T
	team   uuid.UUID
	key    string
	device uuid.UUID // that of the readings and the assignments
	pages  int
	blocks map[int]bool
}

// blockLength is how long each assignment of a scene is.
const blockLength = 6 * time.Hour

// empty is the scene of a team without devices.
func (s *stage) empty(t *testing.T, rt *rapid.T) *scene {
	t.Helper()
	c := &scene{stage: s, t: t, rt: rt, team: s.id(rt), blocks: map[int]bool{}}
	s.addTeam(t, c.team)
	c.key = s.addKey(t, roomsensor.Key{TeamID: c.team, Scope: roomsensor.ScopeReadWrite})
	return c
}

func (s *stage) scene(t *testing.T, rt *rapid.T) *scene {
	t.Helper()
	c := s.empty(t, rt)
	c.device = c.newDevice()
	for range rapid.IntRange(0, 7).Draw(rt, "devices") {
		c.newDevice()
	}
	for range rapid.IntRange(0, 6).Draw(rt, "assignments") {
		c.newBlock()
	}
	c.newReadings(rapid.IntRange(0, 40).Draw(rt, "readings"))
	return c
}

func (c *scene) newDevice() uuid.UUID {
	c.t.Helper()
	id := c.id(c.rt)
	c.exec(c.t, `INSERT INTO devices (id, team_id, hardware_id, metadata) VALUES ($1, $2, $3, '{"floor":"1"}')`,
		id, c.team, fmt.Sprintf("dev:%d", c.made))
	return id
}

// newBlock adds an assignment somewhere among the others, if there is none.
func (c *scene) newBlock() {
	c.t.Helper()
	n := rapid.IntRange(0, 20).Draw(c.rt, "block")
	if c.blocks[n] {
		return
	}
	c.blocks[n] = true
	end := start.Add(-time.Duration(n) * blockLength)
	c.addAssignment(c.t, c.device, c.id(c.rt), end.Add(-blockLength), &end)
}

// newReadings stores readings of the last 30 hours, in a burst.
func (c *scene) newReadings(n int) {
	c.t.Helper()
	newest := c.clock.now().Truncate(roomsensor.BucketLength)
	buckets := make([]time.Time, n)
	for i := range buckets {
		buckets[i] = newest.Add(-time.Duration(rapid.IntRange(0, 360).Draw(c.rt, "bucket")) * roomsensor.BucketLength)
	}
	c.exec(c.t, `INSERT INTO readings (device_id, bucket_at, co2_ppm) SELECT $1, unnest($2::timestamptz[]), 1
		ON CONFLICT DO NOTHING`, c.device, buckets)
}

// rename changes a device by the API.
func (c *scene) rename() {
	c.t.Helper()
	replica := c.replicas[rapid.IntRange(0, 1).Draw(c.rt, "replica")]
	got := replica.do(c.t, http.MethodPatch, "/v1/devices/"+c.device.String(), `{"display_name":"x","metadata":{"a":"b"}}`,
		withKey(c.key), header("Content-Type", "application/json"))
	require.Equal(c.rt, http.StatusOK, got.status)
}

// restart replaces a replica by a new one.
func (c *scene) restart() {
	c.t.Helper()
	i := rapid.IntRange(0, 1).Draw(c.rt, "replica")
	c.replicas[i] = c.serve(c.t, backend{c.store}, nil)
}

// change is what happens between two pages.
func (c *scene) change() {
	c.t.Helper()
	switch rapid.IntRange(0, 6).Draw(c.rt, "change") {
	case 0, 1:
		c.newReadings(rapid.IntRange(1, 20).Draw(c.rt, "readings"))
	case 2:
		c.newDevice()
	case 3:
		c.newBlock()
	case 4:
		c.rename()
	case 5:
		c.clock.advance(time.Duration(rapid.IntRange(1, 100).Draw(c.rt, "minutes")) * time.Minute)
	case 6:
		c.restart()
	}
}
