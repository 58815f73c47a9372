package store_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"pgregory.net/rapid"

	"roomsensor/internal/roomsensor"
)

// TestDevices reads all pages of a team.
func TestDevices(t *testing.T) {
	t.Parallel()
	f := setup(t)
	for i := range 7 {
		f.newDevice(t, fmt.Sprintf("dev:10%d", i))
	}
	var ids []uuid.UUID
	var after *uuid.UUID
	for {
		page, err := f.Devices(t.Context(), f.team, roomsensor.DeviceQuery{After: after, Limit: 3})
		require.NoError(t, err)
		if len(page) == 0 {
			break
		}
		for _, d := range page {
			ids = append(ids, d.ID)
		}
		after = &ids[len(ids)-1]
	}
	require.Len(t, ids, 8)
	require.IsIncreasing(t, texts(ids))

	foreign, err := f.Devices(t.Context(), uuid.New(), roomsensor.DeviceQuery{Limit: 10})
	require.NoError(t, err)
	require.Empty(t, foreign)
}

func texts(ids []uuid.UUID) (list []string) {
	for _, id := range ids {
		list = append(list, id.String())
	}
	return list
}

func TestDevicesMetadataFilter(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.exec(t, `UPDATE devices SET metadata = '{"floor": "3", "site": "Ost"}' WHERE id = $1`, f.device)
	f.newDevice(t, "dev:2")
	for _, test := range []struct {
		filter map[string]string
		found  int
	}{
		{nil, 2},
		{map[string]string{"floor": "3"}, 1},
		{map[string]string{"floor": "3", "site": "Ost"}, 1},
		{map[string]string{"floor": "3", "site": "ost"}, 0},
		{map[string]string{"floor": ""}, 0},
		{map[string]string{"floor": "\x00"}, 0},
		{map[string]string{"floor": "\xff"}, 0},
		{map[string]string{"": "3"}, 0},
	} {
		q := roomsensor.DeviceQuery{Metadata: test.filter, Limit: 10}
		list, err := f.Devices(t.Context(), f.team, q)
		require.NoError(t, err)
		require.Len(t, list, test.found, "%q", test.filter)
		current, err := f.CurrentDevices(t.Context(), f.team, q, roomsensor.SummaryWindow(time.Now()))
		require.NoError(t, err)
		require.Len(t, current, test.found, "%q", test.filter)
	}
}

// rename returns a patch of the display name.
func rename(name string) roomsensor.DevicePatch {
	return roomsensor.DevicePatch{SetDisplayName: true, DisplayName: &name}
}

func TestUpdateDevice(t *testing.T) {
	t.Parallel()
	f := setup(t)
	patch := rename("Room")
	patch.Metadata.Values = map[string]*string{"a": new("1"), "b": new("2")}
	changed, err := f.UpdateDevice(t.Context(), f.team, f.device, patch)
	require.NoError(t, err)
	require.Equal(t, "Room", *changed.DisplayName)

	d, err := f.Device(t.Context(), f.team, f.device)
	require.NoError(t, err)
	require.Equal(t, map[string]string{"a": "1", "b": "2"}, d.Metadata)

	_, err = f.UpdateDevice(t.Context(), uuid.New(), f.device, patch)
	require.ErrorIs(t, err, roomsensor.ErrNotFound, "another team's device")
}

// TestUpdateDeviceWithoutRow checks that an update which changes no row, although the device exists, ends. A trigger
// skips the update.
func TestUpdateDeviceWithoutRow(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.exec(t, `CREATE FUNCTION skip() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$`)
	f.exec(t, "CREATE TRIGGER skip BEFORE UPDATE ON devices FOR EACH ROW EXECUTE FUNCTION skip()")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	_, err := f.UpdateDevice(ctx, f.team, f.device, rename("Room"))
	require.ErrorIs(t, err, roomsensor.ErrNotFound)
}

// TestUpdateDeviceTooManyTags checks the limit of tags (decision 21).
func TestUpdateDeviceTooManyTags(t *testing.T) {
	t.Parallel()
	t.Run("after the merge", func(t *testing.T) {
		t.Parallel()
		f := setup(t)
		fill := roomsensor.DevicePatch{Metadata: roomsensor.MetadataPatch{Values: map[string]*string{}}}
		for i := range roomsensor.MaxMetadataKeys {
			fill.Metadata.Values[fmt.Sprint("k", i)] = new("v")
		}
		_, err := f.UpdateDevice(t.Context(), f.team, f.device, fill)
		require.NoError(t, err)
		one := roomsensor.DevicePatch{Metadata: roomsensor.MetadataPatch{Values: map[string]*string{"one": new("v")}}}
		_, err = f.UpdateDevice(t.Context(), f.team, f.device, one)
		requireCode(t, err, roomsensor.CodeValidationFailed)
		one.Metadata.Values["k0"] = nil // One is added and one removed.
		_, err = f.UpdateDevice(t.Context(), f.team, f.device, one)
		require.NoError(t, err)
	})
	t.Run("a device with too many tags can be renamed", func(t *testing.T) {
		t.Parallel() // Only SQL can have inserted so many.
		f := setup(t)
		f.exec(t, "UPDATE devices SET metadata = (SELECT jsonb_object_agg('k' || n, 'v') FROM generate_series(0, 50) n)")
		changed, err := f.UpdateDevice(t.Context(), f.team, f.device, rename("Room"))
		require.NoError(t, err)
		require.Equal(t, "Room", *changed.DisplayName)

		change := rename("Room")
		change.Metadata.Values = map[string]*string{"k0": new("other")}
		_, err = f.UpdateDevice(t.Context(), f.team, f.device, change)
		requireCode(t, err, roomsensor.CodeValidationFailed)
	})
	t.Run("concurrent requests", func(t *testing.T) {
		t.Parallel()
		f := setup(t)
		var added atomic.Int32
		var requests errgroup.Group
		for i := range 2 * roomsensor.MaxMetadataKeys {
			requests.Go(func() error {
				change := roomsensor.DevicePatch{Metadata: roomsensor.MetadataPatch{Values: map[string]*string{fmt.Sprint("k", i): new("v")}}}
				_, err := f.UpdateDevice(t.Context(), f.team, f.device, change)
				if err == nil {
					added.Add(1)
					return nil
				}
				requireCode(t, err, roomsensor.CodeValidationFailed)
				return nil
			})
		}
		require.NoError(t, requests.Wait())
		require.EqualValues(t, roomsensor.MaxMetadataKeys, added.Load())
	})
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
		f.exec(t, "UPDATE devices SET metadata = $1", before)
		for range rapid.IntRange(1, 3).Draw(rt, "patches") {
			patch := roomsensor.DevicePatch{SetDisplayName: rapid.Bool().Draw(rt, "set name"), DisplayName: rapid.Ptr(value, true).Draw(rt, "name")}
			patch.Metadata.Clear = rapid.Bool().Draw(rt, "clear")
			patch.Metadata.Values = rapid.MapOf(key, rapid.Ptr(value, true)).Draw(rt, "values")
			want = patch.Metadata.Apply(want)
			d, err := f.UpdateDevice(t.Context(), f.team, f.device, patch)
			require.NoError(rt, err)
			require.Equal(rt, want, d.Metadata)
			if patch.SetDisplayName {
				require.Equal(rt, patch.DisplayName, d.DisplayName)
			}
		}
	})
}
