package fleet_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"pgregory.net/rapid"

	"roomsensor/internal/roomsensor"
)

// TestUpdateDeviceWithoutRow checks that an update which changes no row twice, although the device exists, is
// overloaded: the client can send it again. A trigger skips the update.
func TestUpdateDeviceWithoutRow(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.Exec(t, `CREATE FUNCTION skip() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$`)
	f.Exec(t, "CREATE TRIGGER skip BEFORE UPDATE ON devices FOR EACH ROW EXECUTE FUNCTION skip()")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, err := f.UpdateDevice(ctx, f.TeamID, f.DeviceID, rename("Room"))
	requireCode(t, err, roomsensor.CodeOverloaded)
}

// TestUpdateDeviceTooManyTags checks that a device which has too many tags, as only SQL can insert, can be renamed.
func TestUpdateDeviceTooManyTags(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.Exec(t, "UPDATE devices SET metadata = (SELECT jsonb_object_agg('k' || n, 'v') FROM generate_series(0, 50) n)")
	changed, err := f.UpdateDevice(t.Context(), f.TeamID, f.DeviceID, rename("Room"))
	require.NoError(t, err)
	require.Equal(t, "Room", *changed.DisplayName)

	change := rename("Room")
	change.Metadata.Values = map[string]*string{"k0": new("other")}
	_, err = f.UpdateDevice(t.Context(), f.TeamID, f.DeviceID, change)
	requireCode(t, err, roomsensor.CodeValidationFailed)
}

// TestUpdateDeviceMerge checks that the statement merges tags as MetadataPatch.Apply does (decision 21).
func TestUpdateDeviceMerge(t *testing.T) {
	t.Parallel()
	f := setup(t)
	rapid.Check(t, func(rt *rapid.T) {
		key := rapid.OneOf(rapid.SampledFrom([]string{"", "a", "b", "A", "\"", "a.b", "ключ"}), rapid.StringN(0, 5, -1)).
			Filter(roomsensor.IsPlain)
		value := rapid.StringN(0, 5, -1).Filter(roomsensor.IsPlain)
		want := rapid.MapOf(key, value).Draw(rt, "before")
		before, err := json.Marshal(want)
		require.NoError(rt, err)
		f.Exec(t, "UPDATE devices SET metadata = $1", before)
		for range rapid.IntRange(1, 3).Draw(rt, "patches") {
			patch := roomsensor.DevicePatch{SetDisplayName: rapid.Bool().Draw(rt, "set name"), DisplayName: rapid.Ptr(value, true).Draw(rt, "name")}
			patch.Metadata.Clear = rapid.Bool().Draw(rt, "clear")
			patch.Metadata.Values = rapid.MapOf(key, rapid.Ptr(value, true)).Draw(rt, "values")
			want = patch.Metadata.Apply(want)
			d, err := f.UpdateDevice(t.Context(), f.TeamID, f.DeviceID, patch)
			require.NoError(rt, err)
			require.Equal(rt, want, d.Metadata)
			if patch.SetDisplayName {
				require.Equal(rt, patch.DisplayName, d.DisplayName)
			}
		}
	})
}

// TestUpdateDeviceWaits checks that changes of one device wait for each other without connections, and are all made.
func TestUpdateDeviceWaits(t *testing.T) {
	t.Parallel()
	f := setup(t)
	tx, err := f.SQL.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `SELECT FROM devices FOR UPDATE`)
	require.NoError(t, err)
	var changes errgroup.Group
	for i := range 20 {
		changes.Go(func() error {
			var patch roomsensor.DevicePatch
			patch.Metadata.Values = map[string]*string{fmt.Sprintf("tag%d", i): new("x")}
			_, err := f.UpdateDevice(t.Context(), f.TeamID, f.DeviceID, patch)
			return err
		})
	}
	waiting := func() int {
		return f.Number(t, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`)
	}
	require.Eventually(t, func() bool { return waiting() == 1 }, patience, time.Millisecond)
	require.Never(t, func() bool { return waiting() > 1 }, 300*time.Millisecond, 10*time.Millisecond)
	require.NoError(t, tx.Commit(t.Context()))
	require.NoError(t, changes.Wait())
	require.Equal(t, 20, f.Number(t, `SELECT count(*) FROM devices, jsonb_object_keys(metadata)`))
}

// TestUpdateDeviceDuringTransfer checks that a change which waits for the transfer of an assignment returns the new one.
func TestUpdateDeviceDuringTransfer(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.Exec(t, `INSERT INTO assignments (device_id, type, label, started_at) SELECT id, 'place', 'Dorm', now() FROM devices`)
	tx, err := f.SQL.Begin(t.Context())
	require.NoError(t, err)
	for _, statement := range []string{
		"SELECT FROM devices FOR NO KEY UPDATE", "UPDATE assignments SET ended_at = now()",
		"INSERT INTO assignments (device_id, type, label, started_at) SELECT id, 'place', 'Gym', now() FROM devices",
	} {
		_, err = tx.Exec(t.Context(), statement)
		require.NoError(t, err)
	}
	var changed roomsensor.Device
	var change errgroup.Group
	change.Go(func() (err error) {
		changed, err = f.UpdateDevice(t.Context(), f.TeamID, f.DeviceID, rename("Room"))
		return err
	})
	require.Eventually(t, func() bool {
		return f.Number(t, `SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event_type = 'Lock'`) == 1
	}, patience, time.Millisecond)
	require.NoError(t, tx.Commit(t.Context()))
	require.NoError(t, change.Wait())
	require.Equal(t, "Gym", changed.ActiveAssignment.Label)
}

// TestRetireDevice checks that a retired device is in no list, and that an assignment or a unit brings it back.
func TestRetireDevice(t *testing.T) {
	t.Parallel()
	f := setup(t)
	team, err := f.CreateTeam(t.Context(), "Retiring")
	require.NoError(t, err)
	f.TeamID = team.ID
	at := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	kept, err := f.CreateDevice(t.Context(), roomsensor.NewDevice{TeamID: f.TeamID, HardwareID: "dev:901"}, at)
	require.NoError(t, err)
	retired, err := f.CreateDevice(t.Context(), roomsensor.NewDevice{TeamID: f.TeamID, HardwareID: "dev:902"}, at)
	require.NoError(t, err)
	f.start(t, retired.ID, "Anna", at.Add(-time.Hour))
	listed := func() (ids []uuid.UUID) {
		require.NoError(t, f.EachDevice(t.Context(), f.TeamID, roomsensor.DeviceQuery{Limit: 10}, func(d *roomsensor.Device) {
			ids = append(ids, d.ID)
		}))
		owned, err := f.TeamDevices(t.Context(), f.TeamID, false)
		require.NoError(t, err)
		require.Len(t, owned, len(ids))
		return ids
	}
	for n := range 2 { // The second time changes nothing.
		device, err := f.RetireDevice(t.Context(), f.TeamID, retired.ID, at.Add(time.Duration(n)*time.Hour))
		require.NoError(t, err)
		require.Equal(t, at, *device.RetiredAt)
		require.Nil(t, device.ActiveAssignment)
	}
	require.Equal(t, []uuid.UUID{kept.ID}, listed())
	ended := f.stored(t, retired.ID)
	require.Len(t, ended, 1)
	require.Equal(t, at, ended[0].EndedAt.UTC())
	again, err := f.CreateDevice(t.Context(), roomsensor.NewDevice{TeamID: f.TeamID, HardwareID: "dev:902"}, at)
	require.NoError(t, err, "its unit is free")
	require.Len(t, listed(), 2)

	reopened := ended[0]
	reopened.EndedAt = nil
	f.mustChange(t, edit(ended[0], reopened))
	require.Len(t, listed(), 3)
	_, err = f.RetireDevice(t.Context(), f.TeamID, retired.ID, at)
	require.NoError(t, err)
	f.start(t, retired.ID, "Bea", at)
	require.Len(t, listed(), 3)
	_, err = f.RetireDevice(t.Context(), f.TeamID, again.ID, at.Add(time.Hour))
	require.NoError(t, err)
	require.Len(t, listed(), 2)
	_, err = f.ReplaceHardware(t.Context(), f.TeamID, again.ID, "dev:903", at.Add(2*time.Hour))
	require.NoError(t, err)
	require.Len(t, listed(), 3)
	other, err := f.CreateTeam(t.Context(), "Other")
	require.NoError(t, err)
	_, err = f.RetireDevice(t.Context(), other.ID, kept.ID, at)
	require.ErrorIs(t, err, roomsensor.ErrNotFound)
}
