package browser_test

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/config"
	"roomsensor/internal/password"
	"roomsensor/internal/process"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/service"
	"roomsensor/schema"
	"roomsensor/test/dbtest"
	"roomsensor/test/demotest"
)

// siteHistory is how far back the readings go: the page of last night shows the 14 nights before, too.
const siteHistory = 16 * 24 * time.Hour

// site is the dashboard over the data of a running demo, which has the other processes too.
type site struct {
	url     string
	api     string               // base URL of the API, without /v1
	uploads string               // where units upload
	team    uuid.UUID            // of the demo
	devices map[string]uuid.UUID // of the demo, by name
	sql     *pgxpool.Pool        // for what people cannot do
}

// newSite starts the demo, and over its database a dashboard with only the rights of its role.
func newSite(t *testing.T) *site {
	t.Helper()
	database := dbtest.New(t)
	options := demotest.Options(t, database.URL)
	options.History, options.Every = siteHistory, 5*time.Second
	running := demotest.Start(t, options)
	s := &site{
		devices: map[string]uuid.UUID{}, uploads: running.Value(t, "Uploads"),
		api: strings.TrimSuffix(running.Value(t, "Base URL"), "/v1"),
	}
	var err error
	s.sql, err = pgxpool.New(t.Context(), database.URL)
	require.NoError(t, err)
	t.Cleanup(s.sql.Close)
	rows, err := s.sql.Query(t.Context(), `SELECT d.id, d.team_id, coalesce(d.display_name, '') FROM devices d`)
	require.NoError(t, err)
	var id uuid.UUID
	var name string
	_, err = pgx.ForEachRow(rows, []any{&id, &s.team, &name}, func() error {
		s.devices[name] = id
		return nil
	})
	require.NoError(t, err)
	s.serve(t, database.As(t, schema.RoleDashboard))
	return s
}

// serve runs the process of the dashboard. It ends with the test.
func (s *site) serve(t *testing.T, databaseURL string) {
	t.Helper()
	cfg := config.Defaults[config.Dashboard]()
	cfg.DatabaseURL, cfg.PublicURL = config.Secret(databaseURL), s.api
	cfg.IngestURL = strings.TrimSuffix(s.uploads, "/uploads")
	cfg.DashboardAddr, cfg.OpsAddr = "127.0.0.1:0", "127.0.0.1:0"
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ready, done := make(chan struct{}), make(chan error, 1)
	go func() {
		done <- service.RunDashboard(ctx, cfg, process.Options{
			Log: zerolog.Nop(), Ready: func() { close(ready) },
			Started: func(name string, bound net.Addr) {
				if name == "dashboard" {
					s.url = "http://" + bound.String()
				}
			},
		})
	}()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-done)
	})
	select {
	case <-ready:
	case err := <-done:
		done <- err
		require.NoError(t, err, "the dashboard ended")
	}
}

// secretPassword is that of every person of a test.
const secretPassword = "correct horse battery staple"

// person is a person with an account.
type person struct {
	id    uuid.UUID
	email string
}

// person creates a person with a role in a team.
func (s *site) person(t *testing.T, team uuid.UUID, role roomsensor.Role) person {
	t.Helper()
	p := person{email: role.String() + "-" + uuid.NewString()[:8] + "@example.com"}
	hash, err := password.Cost{MemoryKiB: 8, Passes: 1, Threads: 1}.Hash(t.Context(), secretPassword)
	require.NoError(t, err)
	require.NoError(t, s.sql.QueryRow(t.Context(),
		`INSERT INTO users (email, display_name, password_hash) VALUES ($1, 'Robin Vale', $2) RETURNING id`, p.email, hash).Scan(&p.id))
	s.exec(t, `INSERT INTO memberships (team_id, user_id, role) VALUES ($1, $2, $3)`, team, p.id, role.String())
	return p
}

func (s *site) exec(t *testing.T, sql string, arguments ...any) {
	t.Helper()
	_, err := s.sql.Exec(t.Context(), sql, arguments...)
	require.NoError(t, err)
}

// signIn signs a person in, with the keyboard.
func (s *site) signIn(t *testing.T, p *tab, who person) {
	t.Helper()
	p.open(t, s.url+"/sign-in")
	p.fillFocused(t, who.email)
	p.fill(t, "Password", secretPassword)
	p.enter(t, "Sign in")
	require.NotContains(t, p.address(t), "/sign-in", p.text(t))
}

// signedIn opens a tab in which a person with a role in the team of the demo is signed in.
func (s *site) signedIn(t *testing.T, v view, role roomsensor.Role) *tab {
	t.Helper()
	p := newTab(t, v)
	s.signIn(t, p, s.person(t, s.team, role))
	return p
}
