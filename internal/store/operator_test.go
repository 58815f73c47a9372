package store_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store"
)

func requireRefused(t *testing.T, err error, says string) {
	t.Helper()
	var refused roomsensor.RefusedError
	require.ErrorAs(t, err, &refused)
	require.Contains(t, string(refused), says)
	require.Equal(t, string(refused), err.Error(), "a sentence, without what was being done")
}

func TestKeysAreKept(t *testing.T) {
	t.Parallel()
	f := setup(t)
	id, _, sum := roomsensor.GenerateKey(roomsensor.APIKey)
	expires := at("2030-01-01T00:00:00Z")
	_, err := f.CreateAPIKey(t.Context(), roomsensor.Key{
		ID: id, TeamID: f.team, SecretSHA256: sum, Scope: roomsensor.ScopeRead, Label: new("CI"), ExpiresAt: &expires,
	})
	require.NoError(t, err)
	key, err := f.APIKey(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, sum, key.SecretSHA256)
	require.True(t, key.ExpiresAt.Equal(expires))

	revoked, err := f.RevokeAPIKey(t.Context(), id)
	require.NoError(t, err)
	again, err := f.RevokeAPIKey(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, revoked.RevokedAt, again.RevokedAt, "the first revoke counts")

	_, err = f.APIKey(t.Context(), "none")
	require.ErrorIs(t, err, roomsensor.ErrNotFound)
	_, err = f.RevokeAPIKey(t.Context(), "none")
	requireRefused(t, err, "There is no API key none")
	_, err = f.CreateAPIKey(t.Context(), roomsensor.Key{ID: "x", TeamID: uuid.New(), SecretSHA256: sum, Scope: roomsensor.ScopeRead})
	requireRefused(t, err, "There is no team")
	_, err = f.APIKeys(t.Context(), uuid.New())
	requireRefused(t, err, "There is no team")

	list, err := f.APIKeys(t.Context(), f.team)
	require.NoError(t, err)
	require.Len(t, list, 1)
}

func TestIngestKeysAreAKindOfTheirOwn(t *testing.T) {
	t.Parallel()
	f := setup(t)
	id, _, sum := roomsensor.GenerateKey(roomsensor.IngestKey)
	_, err := f.CreateIngestKey(t.Context(), roomsensor.Key{ID: id, TeamID: f.team, SecretSHA256: sum})
	require.NoError(t, err)
	_, err = f.APIKey(t.Context(), id)
	require.ErrorIs(t, err, roomsensor.ErrNotFound)
	all, err := f.IngestKeys(t.Context())
	require.NoError(t, err)
	require.Len(t, all, 1)
	_, err = f.RevokeIngestKey(t.Context(), id)
	require.NoError(t, err)
	list, err := f.TeamIngestKeys(t.Context(), f.team)
	require.NoError(t, err)
	require.NotNil(t, list[0].RevokedAt)
	_, err = f.RevokeIngestKey(t.Context(), "none")
	requireRefused(t, err, "There is no upload credential none")
}

func TestDevicesHaveUnits(t *testing.T) {
	t.Parallel()
	f := setup(t)
	now := at("2026-05-01T00:00:00Z")
	_, err := f.CreateDevice(t.Context(), store.NewDevice{TeamID: f.team, HardwareID: "dev:1"}, now)
	requireRefused(t, err, "Unit dev:1 sits in device "+f.device.String())

	removed, err := f.RemoveHardware(t.Context(), f.device, now)
	require.NoError(t, err)
	require.Equal(t, "dev:1", removed.HardwareID, "a device whose unit was removed shows its last one")
	_, err = f.RemoveHardware(t.Context(), f.device, now)
	requireRefused(t, err, "No unit sits in device")

	early := now.Add(-time.Hour)
	_, err = f.CreateDevice(t.Context(), store.NewDevice{TeamID: f.team, HardwareID: "dev:1", InstalledAt: &early}, now)
	requireRefused(t, err, "sat in device "+f.device.String()+" until 2026-05-01T00:00:00Z")

	second, err := f.CreateDevice(t.Context(), store.NewDevice{TeamID: f.team, HardwareID: "dev:1"}, now)
	require.NoError(t, err, "a unit that was installed before defaults to now")

	_, err = f.ReplaceHardware(t.Context(), second.ID, "dev:1", now)
	requireRefused(t, err, "sits in device "+second.ID.String()+" already")
	_, err = f.ReplaceHardware(t.Context(), second.ID, "dev:3", now)
	requireRefused(t, err, "Choose a later time")
	_, err = f.ReplaceHardware(t.Context(), f.device, "dev:1", now.Add(time.Hour))
	requireRefused(t, err, "Take it out first")
	_, err = f.ReplaceHardware(t.Context(), f.device, "dev:4", now.Add(-time.Minute))
	requireRefused(t, err, "held another unit")
	swapped, err := f.ReplaceHardware(t.Context(), second.ID, "dev:3", now.Add(time.Hour))
	require.NoError(t, err)
	require.Equal(t, "dev:3", swapped.HardwareID)

	_, err = f.ReplaceHardware(t.Context(), uuid.New(), "dev:9", now)
	requireRefused(t, err, "There is no device")
	_, err = f.CreateDevice(t.Context(), store.NewDevice{TeamID: uuid.New(), HardwareID: "dev:9"}, now)
	requireRefused(t, err, "There is no team")

	list, err := f.TeamDevices(t.Context(), f.team)
	require.NoError(t, err)
	require.Len(t, list, 2)
	require.Equal(t, f.team, list[0].TeamID)
}

func TestAssignmentsDoNotOverlap(t *testing.T) {
	t.Parallel()
	f := setup(t)
	start := func(from time.Time) (roomsensor.Assignment, error) {
		return f.StartAssignment(t.Context(), roomsensor.Assignment{
			DeviceID: f.device, Type: roomsensor.Athlete, Label: "Ana", HomeOrTravel: roomsensor.Travel,
			ExternalRef: new("A-1"), StartedAt: from,
		})
	}
	now := at("2026-05-01T00:00:00Z")
	open, err := start(now)
	require.NoError(t, err)
	_, err = start(now.Add(time.Hour))
	requireRefused(t, err, "End it first: roomsensor assignment end "+open.ID.String())
	_, err = f.EndAssignment(t.Context(), open.ID, now)
	requireRefused(t, err, "Choose a later end")
	ended, err := f.EndAssignment(t.Context(), open.ID, now.Add(time.Hour))
	require.NoError(t, err)
	require.True(t, ended.EndedAt.Equal(now.Add(time.Hour)))
	_, err = f.EndAssignment(t.Context(), open.ID, now.Add(2*time.Hour))
	requireRefused(t, err, "ended at 2026-05-01T01:00:00Z already")
	_, err = start(now.Add(30 * time.Minute))
	requireRefused(t, err, "Start at its end or later")
	_, err = start(now.Add(-time.Hour))
	requireRefused(t, err, "Start at its end or later")
	_, err = start(now.Add(time.Hour))
	require.NoError(t, err)

	_, err = f.EndAssignment(t.Context(), uuid.New(), now)
	requireRefused(t, err, "There is no assignment")
	_, err = f.DeviceAssignments(t.Context(), uuid.New())
	requireRefused(t, err, "There is no device")
	list, err := f.DeviceAssignments(t.Context(), f.device)
	require.NoError(t, err)
	require.Len(t, list, 2)
}
