package store_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"pgregory.net/rapid"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store"
)

func renderName(d roomsensor.Device) []byte { return []byte(*d.DisplayName) }

func named(name string) roomsensor.DevicePatch {
	return roomsensor.DevicePatch{SetDisplayName: true, DisplayName: &name}
}

// once needs a key that exists: entries refer to it.
func (f *fixture) once(t *testing.T, body string) *roomsensor.Once {
	t.Helper()
	id, _, sum := roomsensor.GenerateKey(roomsensor.APIKey)
	key, err := f.CreateAPIKey(t.Context(), roomsensor.Key{ID: id, TeamID: f.team, SecretSHA256: sum, Scope: roomsensor.ScopeReadWrite})
	require.NoError(t, err)
	return &roomsensor.Once{KeyID: key.ID, Method: "PATCH", Path: "/v1/devices/x", Key: "k", BodySHA256: sha256.Sum256([]byte(body))}
}

func TestUpdateDevice(t *testing.T) {
	t.Parallel()
	f := setup(t)
	patch := named("Room")
	patch.Metadata.Values = map[string]*string{"a": new("1"), "b": new("2")}
	body, replayed, err := f.UpdateDevice(t.Context(), f.team, f.device, patch, nil, renderName)
	require.NoError(t, err)
	require.False(t, replayed)
	require.Equal(t, "Room", string(body))

	d, err := f.Device(t.Context(), f.team, f.device)
	require.NoError(t, err)
	require.Equal(t, map[string]string{"a": "1", "b": "2"}, d.Metadata)

	_, _, err = f.UpdateDevice(t.Context(), uuid.New(), f.device, patch, nil, renderName)
	require.ErrorIs(t, err, roomsensor.ErrNotFound, "another team's device")
}

// A device may have more tags by SQL; only a change of them is held to the limit.
func TestRenameOfADeviceWithTooManyTags(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.exec(t, "UPDATE devices SET metadata = (SELECT jsonb_object_agg('k' || n, 'v') FROM generate_series(0, 50) n)")
	body, _, err := f.UpdateDevice(t.Context(), f.team, f.device, named("Room"), nil, renderName)
	require.NoError(t, err)
	require.Equal(t, "Room", string(body))

	change := named("Room")
	change.Metadata.Values = map[string]*string{"k0": new("other")}
	_, _, err = f.UpdateDevice(t.Context(), f.team, f.device, change, nil, renderName)
	requireCode(t, err, roomsensor.CodeValidationFailed)
}

func TestTooManyTagsAfterTheMerge(t *testing.T) {
	t.Parallel()
	f := setup(t)
	fill := roomsensor.DevicePatch{Metadata: roomsensor.MetadataPatch{Values: map[string]*string{}}}
	for i := range roomsensor.MaxMetadataKeys {
		fill.Metadata.Values[fmt.Sprint("k", i)] = new("v")
	}
	empty := func(roomsensor.Device) []byte { return nil }
	_, _, err := f.UpdateDevice(t.Context(), f.team, f.device, fill, nil, empty)
	require.NoError(t, err)
	one := roomsensor.DevicePatch{Metadata: roomsensor.MetadataPatch{Values: map[string]*string{"one": new("v")}}}
	_, _, err = f.UpdateDevice(t.Context(), f.team, f.device, one, nil, empty)
	requireCode(t, err, roomsensor.CodeValidationFailed)
	one.Metadata.Values["k0"] = nil // One comes, one goes.
	_, _, err = f.UpdateDevice(t.Context(), f.team, f.device, one, nil, empty)
	require.NoError(t, err)
}

// Spec 8: of many concurrent requests with one key, one runs and the others replay.
func TestUpdateRunsOnce(t *testing.T) {
	t.Parallel()
	f := setup(t)
	other := open(t, f.url, store.API)
	once := f.once(t, "body")
	var runs, replays atomic.Int32
	var requests errgroup.Group
	for i := range 100 {
		s := []*store.Store{f.Store, other}[i%2]
		requests.Go(func() error {
			body, replayed, err := s.UpdateDevice(t.Context(), f.team, f.device, named("Room"), once, func(roomsensor.Device) []byte {
				runs.Add(1)
				return []byte("first answer")
			})
			if replayed {
				replays.Add(1)
			}
			if err == nil && string(body) != "first answer" {
				return fmt.Errorf("answered %q", body)
			}
			return err
		})
	}
	require.NoError(t, requests.Wait())
	require.EqualValues(t, 1, runs.Load())
	require.EqualValues(t, 99, replays.Load())
}

func TestReplayRules(t *testing.T) {
	t.Parallel()
	f := setup(t)
	once := f.once(t, "body")
	change := func(name string, once *roomsensor.Once) (string, bool, error) {
		body, replayed, err := f.UpdateDevice(t.Context(), f.team, f.device, named(name), once, renderName)
		return string(body), replayed, err
	}
	body, replayed, err := change("first", once)
	require.NoError(t, err)
	require.False(t, replayed)
	require.Equal(t, "first", body)

	different := *once
	different.BodySHA256[0]++
	_, _, err = change("second", &different)
	require.ErrorIs(t, err, roomsensor.ErrBodyDiffers)

	elsewhere := *once
	elsewhere.Path = "/v1/devices/y"
	body, replayed, err = change("elsewhere", &elsewhere)
	require.NoError(t, err)
	require.False(t, replayed, "the same key on a different path is another request")
	require.Equal(t, "elsewhere", body)

	f.exec(t, "UPDATE idempotency_keys SET created_at = created_at - interval '24 hours'")
	body, replayed, err = change("a day later", &different)
	require.NoError(t, err)
	require.False(t, replayed, "entries go after 24 hours")
	require.Equal(t, "a day later", body)

	purged, err := f.PurgeIdempotency(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 1, purged)
}

// Decision 23: only an answer of an update that ran is kept.
func TestFailedUpdateIsNotKept(t *testing.T) {
	t.Parallel()
	f := setup(t)
	once := f.once(t, "body")
	_, _, err := f.UpdateDevice(t.Context(), f.team, uuid.New(), named("x"), once, renderName)
	require.ErrorIs(t, err, roomsensor.ErrNotFound)
	body, replayed, err := f.UpdateDevice(t.Context(), f.team, f.device, named("x"), once, renderName)
	require.NoError(t, err)
	require.False(t, replayed)
	require.Equal(t, "x", string(body))
}

// Whatever is drawn, the statement merges as the domain does (decision 21).
func TestTagsMergeAsTheDomainSays(t *testing.T) {
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
			_, _, err := f.UpdateDevice(t.Context(), f.team, f.device, patch, nil, func(d roomsensor.Device) []byte {
				require.Equal(rt, want, d.Metadata)
				if patch.SetDisplayName {
					require.Equal(rt, patch.DisplayName, d.DisplayName)
				}
				return nil
			})
			require.NoError(rt, err)
		}
	})
}

// Two requests that each add tags, at once, never leave more than the limit.
func TestLimitOfTagsHoldsUnderConcurrency(t *testing.T) {
	t.Parallel()
	f := setup(t)
	var added atomic.Int32
	var requests errgroup.Group
	for i := range 2 * roomsensor.MaxMetadataKeys {
		requests.Go(func() error {
			change := roomsensor.DevicePatch{Metadata: roomsensor.MetadataPatch{Values: map[string]*string{fmt.Sprint("k", i): new("v")}}}
			_, _, err := f.UpdateDevice(t.Context(), f.team, f.device, change, nil, func(roomsensor.Device) []byte { return nil })
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
}
