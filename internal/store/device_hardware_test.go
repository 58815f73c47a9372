package store_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store"
)

// requireHardwareConflict checks that err is a HardwareConflictError of a conflict, unit, device and removal time.
func requireHardwareConflict(
	t *testing.T, err error, want roomsensor.HardwareConflict, hardwareID string, deviceID uuid.UUID, removedAt *time.Time,
) {
	t.Helper()
	var conflict *roomsensor.HardwareConflictError
	require.ErrorAs(t, err, &conflict)
	require.Equal(t, want, conflict.Conflict)
	require.Equal(t, hardwareID, conflict.HardwareID)
	require.Equal(t, deviceID, conflict.DeviceID)
	if removedAt == nil {
		require.Nil(t, conflict.To)
		return
	}
	require.True(t, removedAt.Equal(*conflict.To))
}

// TestDeviceHardware follows a unit through its life: create, remove, install again, replace (decision 40).
func TestDeviceHardware(t *testing.T) {
	t.Parallel()
	f := setup(t)
	now := at("2026-05-01T00:00:00Z")
	_, err := f.CreateDevice(t.Context(), store.NewDevice{TeamID: f.team, HardwareID: "dev:1"}, now)
	requireHardwareConflict(t, err, roomsensor.HardwareInstalled, "dev:1", f.device, nil)

	removed, err := f.RemoveHardware(t.Context(), f.device, now)
	require.NoError(t, err)
	require.Equal(t, "dev:1", removed.HardwareID, "a device without a unit shows its last one")
	_, err = f.RemoveHardware(t.Context(), f.device, now)
	requireHardwareConflict(t, err, roomsensor.HardwareNotInstalled, "", f.device, nil)

	early := now.Add(-time.Hour)
	_, err = f.CreateDevice(t.Context(), store.NewDevice{TeamID: f.team, HardwareID: "dev:1", InstalledAt: &early}, now)
	requireHardwareConflict(t, err, roomsensor.HardwareInstalled, "dev:1", f.device, &now)

	second, err := f.CreateDevice(t.Context(), store.NewDevice{TeamID: f.team, HardwareID: "dev:1"}, now)
	require.NoError(t, err, "a unit that was installed before defaults to now")

	_, err = f.ReplaceHardware(t.Context(), second.ID, "dev:1", now)
	requireHardwareConflict(t, err, roomsensor.HardwareAlreadyThere, "dev:1", second.ID, nil)
	_, err = f.ReplaceHardware(t.Context(), second.ID, "dev:3", now)
	requireHardwareConflict(t, err, roomsensor.HardwareInstalledLater, "dev:1", second.ID, nil)
	_, err = f.ReplaceHardware(t.Context(), f.device, "dev:1", now.Add(time.Hour))
	requireHardwareConflict(t, err, roomsensor.HardwareInstalled, "dev:1", second.ID, nil)
	_, err = f.ReplaceHardware(t.Context(), f.device, "dev:4", now.Add(-time.Minute))
	requireHardwareConflict(t, err, roomsensor.HardwareReplacedLater, "dev:4", f.device, nil)
	swapped, err := f.ReplaceHardware(t.Context(), second.ID, "dev:3", now.Add(time.Hour))
	require.NoError(t, err)
	require.Equal(t, "dev:3", swapped.HardwareID)

	_, err = f.ReplaceHardware(t.Context(), uuid.New(), "dev:9", now)
	requireMissing(t, err, roomsensor.KindDevice)
	_, err = f.CreateDevice(t.Context(), store.NewDevice{TeamID: uuid.New(), HardwareID: "dev:9"}, now)
	requireMissing(t, err, roomsensor.KindTeam)

	list, err := f.TeamDevices(t.Context(), f.team)
	require.NoError(t, err)
	require.Len(t, list, 2)
	require.Equal(t, f.team, list[0].TeamID)
}

func TestInstallations(t *testing.T) {
	t.Parallel()
	f := setup(t)
	swap := at("2026-01-10T00:00:00Z")
	_, err := f.ReplaceHardware(t.Context(), f.device, "dev:2", swap)
	require.NoError(t, err)
	units, err := f.Installations(t.Context(), []string{"dev:1", "dev:2", "dev:3"})
	require.NoError(t, err)
	require.Len(t, units, 2)
	old, fresh := units["dev:1"][0], units["dev:2"][0]
	require.True(t, old.Covers(roomsensor.MeasuredFrom), "unbounded")
	require.True(t, old.Covers(swap.Add(-time.Microsecond)))
	require.False(t, old.Covers(swap))
	require.True(t, fresh.Covers(swap))
	require.Equal(t, f.team, fresh.TeamID)
}
