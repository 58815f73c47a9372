// Package apitest runs the API, with its docs, on a database of its own, for tests of clients.
package apitest

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"roomsensor/docs"
	"roomsensor/internal/api"
	"roomsensor/internal/httpedge"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store"
	"roomsensor/test/dbtest"
	"roomsensor/test/harness"
)

// Service is a running API with one team.
type Service struct {
	URL  string        // base URL, without /v1
	Key  string        // of the team, with the scope read_write
	Team uuid.UUID     // its name is Riverside Athletics
	SQL  *pgxpool.Pool // of its database
}

// Start starts the API on a new database, until the test ends. Responses are never older than the database.
func Start(t testing.TB, devices ...harness.Device) *Service {
	t.Helper()
	database := dbtest.New(t)
	sql, err := pgxpool.New(t.Context(), database.URL)
	require.NoError(t, err)
	t.Cleanup(sql.Close)
	s := &Service{SQL: sql}
	s.Team, err = harness.InsertTeam(t.Context(), sql, "Riverside Athletics", devices)
	require.NoError(t, err)
	s.Key = s.NewKey(t)
	s.URL = serve(t, database.URL)
	return s
}

// NewKey returns another key of the team.
func (s *Service) NewKey(t testing.TB) string {
	t.Helper()
	keys, err := harness.InsertAPIKeys(t.Context(), s.SQL, s.Team, 1)
	require.NoError(t, err)
	return keys[0]
}

// Exec executes a statement on the database.
func (s *Service) Exec(t testing.TB, sql string, args ...any) {
	t.Helper()
	_, err := s.SQL.Exec(t.Context(), sql, args...)
	require.NoError(t, err)
}

// DeleteReadings deletes the readings of a device in a window of buckets, as an operator does.
func (s *Service) DeleteReadings(t testing.TB, device uuid.UUID, from, to time.Time) {
	t.Helper()
	operator, err := store.Open(t.Context(), s.SQL.Config().ConnString(), store.Operator)
	require.NoError(t, err)
	defer operator.Close()
	window := roomsensor.Window{From: from, To: to}
	deleted, err := operator.DeleteReadings(t.Context(), device, window, "The sensor was wet.")
	require.NoError(t, err)
	require.Positive(t, deleted.Readings)
}

// serve returns the base URL of an API on a database.
func serve(t testing.TB, databaseURL string) string {
	t.Helper()
	backend, err := store.Open(t.Context(), databaseURL, store.API)
	require.NoError(t, err)
	t.Cleanup(backend.Close)
	secret, err := backend.CursorSecret(t.Context())
	require.NoError(t, err)
	server := httptest.NewUnstartedServer(nil)
	url := "http://" + server.Listener.Addr().String()
	pages, err := docs.Handler(docs.Options{PublicURL: url, DocsURL: url + "/docs"})
	require.NoError(t, err)
	handler, err := api.New(api.Config{
		Site: httpedge.Site{DocsURL: url + "/docs"}, CursorSecret: secret, Docs: pages, Log: zerolog.Nop(), SnapshotAge: -1,
	}, backend)
	require.NoError(t, err)
	server.Config = api.NewServer(handler, zerolog.Nop())
	server.Listener = httpedge.IdleListener(server.Listener)
	server.Start()
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		server.Close()
	})
	return url
}
