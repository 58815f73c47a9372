package e2e_test

import (
	"io"
	"iter"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/client"
)

// reader reads the API of one process. Its methods require success, and that every response complies with the OpenAPI
// document.
type reader struct {
	*client.Client
	t *testing.T
}

// at returns a reader of a process. Its client sends each request once.
func (e *env) at(s *server, key string) *reader {
	e.t.Helper()
	c, err := client.New(s.url, key, client.WithHTTPClient(e.client), client.WithMaxAttempts(1))
	require.NoError(e.t, err)
	return &reader{c, e.t}
}

// api returns a reader of the first API process.
func (e *env) api() *reader {
	e.t.Helper()
	return e.at(e.apis[0], e.key)
}

// onEveryAPI calls check for each API process.
func (e *env) onEveryAPI(check func(*reader)) {
	e.t.Helper()
	for _, s := range e.apis {
		check(e.at(s, e.key))
	}
}

// all returns the items of a list.
func all[T any](t *testing.T, items iter.Seq2[T, error]) (found []T) {
	t.Helper()
	for item, err := range items {
		require.NoError(t, err)
		found = append(found, item)
	}
	return found
}

func (r *reader) team() client.TeamAndKey {
	r.t.Helper()
	team, err := r.Team(r.t.Context())
	require.NoError(r.t, err)
	return team
}

func (r *reader) devices() []client.Device {
	r.t.Helper()
	return all(r.t, r.Devices(r.t.Context(), client.DeviceQuery{}))
}

func (r *reader) current() []client.CurrentDevice {
	r.t.Helper()
	return all(r.t, r.CurrentDevices(r.t.Context(), client.DeviceQuery{}))
}

func (r *reader) device(id string) client.Device {
	r.t.Helper()
	device, err := r.Device(r.t.Context(), uuid.MustParse(id))
	require.NoError(r.t, err)
	return device
}

func (r *reader) assignments(device string) []client.Assignment {
	r.t.Helper()
	return all(r.t, r.Assignments(r.t.Context(), uuid.MustParse(device)))
}

// readings returns the readings of a device, newest first.
func (r *reader) readings(device string, w client.Window) []client.Reading {
	r.t.Helper()
	return all(r.t, r.Readings(r.t.Context(), uuid.MustParse(device), client.ReadingQuery{Window: w}))
}

// csv returns an export of devices, or of all.
func (r *reader) csv(w client.Window, devices ...string) string {
	r.t.Helper()
	q := client.ExportQuery{Window: w}
	for _, id := range devices {
		q.Devices = append(q.Devices, uuid.MustParse(id))
	}
	export, err := r.ExportCSV(r.t.Context(), q)
	require.NoError(r.t, err)
	text, err := io.ReadAll(export)
	require.NoError(r.t, err)
	require.NoError(r.t, export.Close())
	return string(text)
}

// requireCode checks that a request to the team of a key is refused with a code.
func (r *reader) requireCode(code client.ErrorCode) {
	r.t.Helper()
	_, err := r.Team(r.t.Context())
	require.True(r.t, client.HasCode(err, code), err)
}
