package fleet_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
	"roomsensor/test/conformance"
)

// What a receiver knows of a key follows its source: the format, whether it is disabled, and its deletion.
func TestSourceKeys(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "A10.1", "A10.9")
	f := setup(t)
	id, _, sum := roomsensor.GenerateKey(roomsensor.IngestKey)
	key := roomsensor.Key{ID: id, TeamID: f.TeamID, SecretSHA256: sum}
	source, err := f.CreateSource(t.Context(), roomsensor.Source{TeamID: f.TeamID, Name: "Gateway", Format: "tts"}, &key)
	require.NoError(t, err)
	_, err = f.CreateSource(t.Context(), roomsensor.Source{TeamID: f.TeamID, Name: "Gateway", Format: "tts"}, nil)
	require.ErrorContains(t, err, `has a source "Gateway"`)
	unbound, _, sum := roomsensor.GenerateKey(roomsensor.IngestKey)
	_, err = f.CreateIngestKey(t.Context(), roomsensor.Key{ID: unbound, TeamID: f.TeamID, SecretSHA256: sum})
	require.NoError(t, err)
	other, err := f.CreateTeam(t.Context(), "Other")
	require.NoError(t, err)
	stranger, _, sum := roomsensor.GenerateKey(roomsensor.IngestKey)
	_, err = f.CreateIngestKey(t.Context(), roomsensor.Key{
		ID: stranger, TeamID: other.ID, SecretSHA256: sum, Source: &roomsensor.KeySource{ID: source.ID},
	})
	require.ErrorIs(t, err, roomsensor.ErrNotFound, "a key of another team's source")

	since, err := f.IngestKeyPosition(t.Context())
	require.NoError(t, err)
	changed := func() map[string]roomsensor.Key {
		keys, err := f.IngestKeysChanged(t.Context(), since, 100)
		require.NoError(t, err)
		byID := map[string]roomsensor.Key{}
		for _, k := range keys {
			byID[k.ID] = k
		}
		since, err = f.IngestKeyPosition(t.Context())
		require.NoError(t, err)
		return byID
	}
	set := func(c roomsensor.SourceChange) {
		_, err := f.ChangeSource(t.Context(), f.TeamID, source.ID, c)
		require.NoError(t, err)
	}
	set(roomsensor.SourceChange{Name: new("Gateway 1"), Mapping: new(`{"unit":"x"}`)})
	set(roomsensor.SourceChange{Format: new("influx")})
	got := changed()
	require.Equal(t, &roomsensor.KeySource{ID: source.ID, Format: "influx"}, got[id].Source)
	set(roomsensor.SourceChange{Disabled: new(true)})
	require.Equal(t, &roomsensor.KeySource{ID: source.ID}, changed()[id].Source)
	set(roomsensor.SourceChange{Disabled: new(false)})
	require.Equal(t, "influx", changed()[id].Source.Format)

	next, _, sum := roomsensor.GenerateKey(roomsensor.IngestKey)
	_, rotated, err := f.RotateIngestKey(t.Context(), f.TeamID, id, roomsensor.Key{ID: next, SecretSHA256: sum}, time.Hour)
	require.NoError(t, err)
	require.Equal(t, source.ID, rotated.Source.ID, "a key that replaces one of a source is one of the source")
	require.Error(t, f.DeleteSource(t.Context(), other.ID, source.ID))
	require.NoError(t, f.DeleteSource(t.Context(), f.TeamID, source.ID))
	got = changed()
	require.NotNil(t, got[id].RevokedAt)
	require.NotNil(t, got[next].RevokedAt)
	require.Equal(t, &roomsensor.KeySource{ID: source.ID}, got[next].Source)
}

func TestSourceLimit(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "A10.2")
	f := setup(t)
	f.Exec(t, "INSERT INTO sources (team_id, name, format) SELECT $1, n::text, 'tts' FROM generate_series(1, $2) n", f.TeamID, roomsensor.MaxSources)
	_, err := f.CreateSource(t.Context(), roomsensor.Source{TeamID: f.TeamID, Name: "x", Format: "tts"}, nil)
	require.ErrorContains(t, err, "100 sources")
	sources, err := f.TeamSources(t.Context(), f.TeamID)
	require.NoError(t, err)
	require.Equal(t, "10", sources[9].Name)
}

// An alias names a unit in its team, also after the unit moved to another device.
func TestAliases(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "A12.2", "A12.3")
	f := setup(t)
	other, err := f.CreateTeam(t.Context(), "Other")
	require.NoError(t, err)
	create := func(team uuid.UUID, alias string) roomsensor.Device {
		t.Helper()
		d, err := f.CreateDevice(t.Context(), roomsensor.NewDevice{TeamID: team, HardwareID: alias}, time.Now())
		require.NoError(t, err)
		return d.Device
	}
	first := create(f.TeamID, "EUI-A84041B9D1C2F3E4")
	require.Equal(t, "dev:12123762463225344996", first.HardwareID)
	theirs := create(other.ID, "a84041b9d1c2f3e4")
	require.Regexp(t, `^dev:\d{18}$`, theirs.HardwareID, "the hardware id is in use")
	named := create(f.TeamID, "sensor.büro_co2")
	require.Regexp(t, `^dev:\d{18}$`, named.HardwareID)
	aliases, err := f.Aliases(t.Context(), f.TeamID, []string{first.HardwareID, named.HardwareID, theirs.HardwareID})
	require.NoError(t, err)
	require.Equal(t, map[string]string{first.HardwareID: "EUI-A84041B9D1C2F3E4", named.HardwareID: "sensor.büro_co2"}, aliases)

	_, err = f.CreateDevice(t.Context(), roomsensor.NewDevice{TeamID: f.TeamID, HardwareID: "a8:40:41:b9:d1:c2:f3:e4"}, time.Now())
	conflict := &roomsensor.HardwareConflictError{}
	require.ErrorAs(t, err, &conflict)
	require.Equal(t, first.ID, conflict.DeviceID)
	moved := time.Now()
	_, err = f.RemoveHardware(t.Context(), f.TeamID, first.ID, moved)
	require.NoError(t, err)
	_, err = f.RemoveHardware(t.Context(), f.TeamID, named.ID, moved)
	require.NoError(t, err)
	changed, err := f.ReplaceHardware(t.Context(), f.TeamID, named.ID, "A84041B9D1C2F3E4", moved.Add(time.Second))
	require.NoError(t, err)
	require.Equal(t, first.HardwareID, changed.HardwareID)
	history, err := f.UnitHistory(t.Context(), f.TeamID, "a840.41b9.d1c2.f3e4")
	require.NoError(t, err)
	require.Len(t, history, 2)

	// The alias goes with the last device of its unit.
	for i, device := range []uuid.UUID{first.ID, named.ID} {
		_, err = f.DeleteDevice(t.Context(), device)
		require.NoError(t, err)
		aliases, err = f.Aliases(t.Context(), f.TeamID, []string{first.HardwareID})
		require.NoError(t, err)
		require.Len(t, aliases, 1-i)
	}
	aliases, err = f.Aliases(t.Context(), other.ID, []string{theirs.HardwareID})
	require.NoError(t, err)
	require.Len(t, aliases, 1)
}
