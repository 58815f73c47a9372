package dashboard_test

import (
	"context"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/PuerkitoBio/goquery"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/config"
	"roomsensor/internal/dashboard"
	"roomsensor/internal/httpedge"
	"roomsensor/internal/password"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/store"
	"roomsensor/internal/worker"
	"roomsensor/schema"
	"roomsensor/test/dbtest"
	"roomsensor/test/proctest"
)

func TestMain(m *testing.M) { dbtest.Verify(m) }

// secretPassword is that of every person of a test.
const secretPassword = "correct horse battery staple"

// env is a dashboard over its own database, which has one team.
type env struct {
	store  *store.Store
	sql    *pgxpool.Pool // for what the store cannot write
	server *httptest.Server
	log    *proctest.Output
	team   uuid.UUID
	now    time.Time // the time of the dashboard, which stands still
}

func newEnv(t testing.TB) *env {
	t.Helper()
	database := dbtest.New(t)
	e := &env{log: &proctest.Output{}, now: time.Date(2026, 11, 22, 14, 5, 0, 0, time.UTC)}
	var err error
	e.store, err = store.Open(t.Context(), database.As(t, schema.RoleDashboard), store.Dashboard)
	require.NoError(t, err)
	t.Cleanup(e.store.Close)
	e.sql, err = pgxpool.New(t.Context(), database.URL)
	require.NoError(t, err)
	t.Cleanup(e.sql.Close)
	e.team = e.addTeam(t, "Team <&>")
	e.server = e.serve(t, e.store, nil)
	return e
}

// serve starts another replica of the dashboard.
func (e *env) serve(t testing.TB, b dashboard.Backend, configure func(*dashboard.Config)) *httptest.Server {
	t.Helper()
	logger := zerolog.New(e.log).Level(zerolog.DebugLevel)
	cfg := dashboard.Config{
		PublicURL: "http://127.0.0.1:8080",
		SourceURL: (&config.ReceiverSite{IngestURL: "http://127.0.0.1:8081"}).SourceURL,
		Replay: func(ctx context.Context, r roomsensor.Reject) ([]roomsensor.Reject, error) {
			return worker.ReplayForTeam(ctx, e.store, r)
		},
	}
	cfg.URL, cfg.Sessions, cfg.Log = "http://127.0.0.1:8082", e.store.Sessions(), logger
	cfg.Now = func() time.Time { return e.now }
	if configure != nil {
		configure(&cfg)
	}
	handler, err := dashboard.New(cfg, b)
	require.NoError(t, err)
	server := httptest.NewUnstartedServer(nil)
	server.Config = dashboard.NewServer(handler, logger)
	server.Listener = httpedge.IdleListener(server.Listener)
	server.Start()
	t.Cleanup(server.Close)
	return server
}

func (e *env) exec(t testing.TB, sql string, args ...any) {
	t.Helper()
	_, err := e.sql.Exec(t.Context(), sql, args...)
	require.NoError(t, err)
}

// addTeam creates a team and returns its id.
func (e *env) addTeam(t testing.TB, name string) uuid.UUID {
	t.Helper()
	var id uuid.UUID
	require.NoError(t, e.sql.QueryRow(t.Context(), `INSERT INTO teams (name) VALUES ($1) RETURNING id`, name).Scan(&id))
	return id
}

// addUser creates a person without a team, whose password is secretPassword, and returns its id.
func (e *env) addUser(t testing.TB, email string) (id uuid.UUID) {
	t.Helper()
	cheap := password.Cost{MemoryKiB: 8, Passes: 1, Threads: 1} // The tests sign in often.
	hash, err := cheap.Hash(t.Context(), secretPassword)
	require.NoError(t, err)
	require.NoError(t, e.sql.QueryRow(t.Context(),
		`INSERT INTO users (email, password_hash) VALUES ($1, $2) RETURNING id`, email, hash).Scan(&id))
	return id
}

// addMember makes a person a member of a team.
func (e *env) addMember(t testing.TB, team, user uuid.UUID, role roomsensor.Role) {
	t.Helper()
	e.exec(t, `INSERT INTO memberships (team_id, user_id, role) VALUES ($1, $2, $3)`, team, user, role.String())
}

// person is someone with a browser, which keeps cookies and follows no redirect.
type person struct {
	env    *env
	client *http.Client
	url    string
	id     uuid.UUID
	email  string
}

// stranger returns someone who is not signed in.
func (e *env) stranger(t testing.TB) *person {
	t.Helper()
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	client := *e.server.Client()
	client.Jar = jar
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &person{env: e, client: &client, url: e.server.URL}
}

// signIn creates a person with a role in a team, who signs in.
func (e *env) signIn(t testing.TB, team uuid.UUID, role roomsensor.Role) *person {
	t.Helper()
	p := e.stranger(t)
	p.email = role.String() + "-" + uuid.NewString() + "@example.com"
	p.id = e.addUser(t, p.email)
	if role != roomsensor.NoRole {
		e.addMember(t, team, p.id, role)
	}
	p.enter(t)
	return p
}

// enter signs the person in.
func (p *person) enter(t testing.TB) {
	t.Helper()
	answer := p.post(t, "/sign-in", url.Values{"email": {p.email}, "password": {secretPassword}})
	require.Equal(t, http.StatusSeeOther, answer.status, answer.text)
}

// page is a response.
type page struct {
	status int
	header http.Header
	body   string
	text   string // of the page, without markup
	html   *goquery.Document
}

// find returns the elements of a CSS selector.
func (p *page) find(selector string) *goquery.Selection { return p.html.Find(selector) }

// location returns the path of a redirect.
func (p *page) location() string { return p.header.Get("Location") }

// get requests a path.
func (p *person) get(t testing.TB, path string) *page {
	t.Helper()
	return p.send(t, http.MethodGet, path, nil, nil)
}

// post sends a form, as a browser does from a page of the dashboard.
func (p *person) post(t testing.TB, path string, form url.Values) *page {
	t.Helper()
	return p.send(t, http.MethodPost, path, form, map[string]string{"Sec-Fetch-Site": "same-origin"})
}

// follow requests the path to which a response redirects.
func (p *person) follow(t testing.TB, from *page) *page {
	t.Helper()
	require.Equal(t, http.StatusSeeOther, from.status, from.text)
	return p.get(t, from.location())
}

func (p *person) send(t testing.TB, method, path string, form url.Values, header map[string]string) *page {
	t.Helper()
	r, err := http.NewRequestWithContext(context.Background(), method, p.url+path, strings.NewReader(form.Encode()))
	require.NoError(t, err)
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for name, value := range header {
		r.Header.Set(name, value)
	}
	response, err := p.client.Do(r)
	require.NoError(t, err)
	defer func() { require.NoError(t, response.Body.Close()) }()
	var body strings.Builder
	document, err := goquery.NewDocumentFromReader(io.TeeReader(response.Body, &body))
	require.NoError(t, err)
	text := strings.Join(strings.Fields(document.Text()), " ")
	return &page{response.StatusCode, response.Header, body.String(), text, document}
}

// cookie returns the value of the session cookie, or "".
func (p *person) cookie(t testing.TB) string {
	t.Helper()
	base, err := url.Parse(p.url)
	require.NoError(t, err)
	for _, c := range p.client.Jar.Cookies(base) {
		if c.Name == "roomsensor" {
			return c.Value
		}
	}
	return ""
}
