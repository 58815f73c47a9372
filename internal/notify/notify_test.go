package notify_test

import (
	"crypto/tls"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/config"
	"roomsensor/internal/notify"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/roomsensor/alerting"
	"roomsensor/internal/store"
	"roomsensor/schema"
	"roomsensor/test/dbtest"
	"roomsensor/test/storetest"
	"roomsensor/test/tlstest"
)

func TestMain(m *testing.M) { dbtest.Verify(m) }

// mailServer is an SMTP server that keeps what it accepts.
type mailServer struct {
	url    string
	mu     sync.Mutex
	mails  []received
	answer func(to string) error // to a recipient; nil accepts all
	login  string                // USER:PASSWORD that it requires; empty: none
}

type received struct{ to, text string }

// startMail starts an SMTP server, with TLS and a login if it has certificates.
func startMail(t *testing.T, files *tlstest.Certificates) *mailServer {
	t.Helper()
	m := &mailServer{}
	server := smtp.NewServer(m)
	server.Domain = "localhost"
	if files != nil {
		pair, err := tls.LoadX509KeyPair(files.Server, files.Key)
		require.NoError(t, err)
		server.TLSConfig = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
		m.login = "rooms:p@ss word"
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener) // Close ends it.
	}()
	t.Cleanup(func() {
		require.NoError(t, server.Close())
		<-done
	})
	m.url = "smtp://" + listener.Addr().String()
	return m
}

// NewSession implements smtp.Backend.
func (m *mailServer) NewSession(*smtp.Conn) (smtp.Session, error) { return &session{server: m}, nil }

type session struct {
	server *mailServer
	to     string
	known  bool // logged in
}

// AuthMechanisms implements smtp.AuthSession.
func (s *session) AuthMechanisms() []string { return []string{sasl.Plain} }

// Auth implements smtp.AuthSession.
func (s *session) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		if user+":"+password != s.server.login {
			return smtp.ErrAuthFailed
		}
		s.known = true
		return nil
	}), nil
}

func (s *session) Mail(string, *smtp.MailOptions) error {
	if s.server.login != "" && !s.known {
		return smtp.ErrAuthRequired
	}
	return nil
}
func (s *session) Reset()        {}
func (s *session) Logout() error { return nil }

func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.to = to
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	if s.server.answer != nil {
		return s.server.answer(to)
	}
	return nil
}

func (s *session) Data(r io.Reader) error {
	text, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	s.server.mails = append(s.server.mails, received{s.to, unfold(string(text))})
	return nil
}

// unfold joins the lines that quoted-printable divided.
func unfold(text string) string {
	return strings.NewReplacer("=\r\n", "", "=3D", "=", "\r\n ", " ", "=C2=A0", " ", "=C2=B0", "°", "=E2=82=82", "₂").Replace(text)
}

// take returns the mails that arrived since the last call.
func (m *mailServer) take() []received {
	m.mu.Lock()
	defer m.mu.Unlock()
	taken := m.mails
	m.mails = nil
	return taken
}

// env is a team in Berlin with a room, and a process that notifies. Its clock stands still.
type env struct {
	*storetest.Fixture
	*notify.Notifier

	store *store.Store // with the rights of the process
	mail  *mailServer
	now   time.Time
}

func newEnv(t *testing.T) *env {
	t.Helper()
	database := dbtest.New(t)
	e := &env{Fixture: storetest.Connect(t, database.URL), mail: startMail(t, nil), now: storetest.At("2026-11-25T12:00:00Z")}
	e.DeviceID = e.NewDevice(t, "dev:1")
	e.store = storetest.Open(t, database.As(t, schema.RoleNotify), store.Notify)
	e.Exec(t, `UPDATE teams SET time_zone = 'Europe/Berlin', name = 'Riverside' WHERE id = $1`, e.TeamID)
	e.Exec(t, `UPDATE devices SET display_name = 'Room 12' WHERE id = $1`, e.DeviceID)
	e.Exec(t, `UPDATE device_hardware SET installed_at = '2026-01-01Z' WHERE device_id = $1`, e.DeviceID)
	e.Notifier = e.replica(t, e.mail.url)
	return e
}

// replica returns another process that sends through a server; none without a URL.
func (e *env) replica(t *testing.T, url string) *notify.Notifier {
	t.Helper()
	sender, err := notify.NewSender(&config.Mail{SMTPURL: config.Secret(url), MailFrom: "Room sensors <rooms@example.com>"})
	require.NoError(t, err)
	return notify.New(notify.Config{
		URL: "https://rooms.example.com", Sender: sender, Now: func() time.Time { return e.now },
		Log: zerolog.Nop(), Metrics: prometheus.NewRegistry(),
	}, e.store)
}

// member adds a member who wants some mails, and returns its id. The address is name@example.com.
func (e *env) member(t *testing.T, name string, c alerting.MailChoice) uuid.UUID {
	t.Helper()
	require.NoError(t, e.SQL.QueryRow(t.Context(), `WITH u AS (INSERT INTO users (email) VALUES ($2) RETURNING id)
		INSERT INTO memberships (user_id, team_id, role) SELECT id, $1, 'viewer' FROM u RETURNING user_id`,
		e.TeamID, name+"@example.com").Scan(&c.UserID))
	require.NoError(t, e.ChooseMails(t.Context(), e.TeamID, c, e.now))
	return c.UserID
}

// assign gives the room to an athlete from a time on.
func (e *env) assign(t *testing.T, label, from string) {
	t.Helper()
	e.Exec(t, `INSERT INTO assignments (device_id, type, label, started_at) VALUES ($1, 'athlete', $2, $3)`,
		e.DeviceID, label, storetest.At(from))
}

// measure stores readings of one value of CO2 in [from, to), and an upload at the end.
func (e *env) measure(t *testing.T, from, to string, co2 float32) {
	t.Helper()
	e.measureMetric(t, from, to, roomsensor.CO2, co2)
}

// measureMetric is measure for another metric.
func (e *env) measureMetric(t *testing.T, from, to string, metric roomsensor.Metric, x float32) {
	t.Helper()
	end := storetest.At(to)
	var rows []roomsensor.DeviceMeasurement
	for at := storetest.At(from); at.Before(end); at = at.Add(roomsensor.BucketLength) {
		m := roomsensor.Measurement{MeasuredAt: at.Add(time.Minute)}
		m.Values.Set(metric, x)
		rows = append(rows, roomsensor.DeviceMeasurement{DeviceID: e.DeviceID, Measurement: m})
	}
	_, err := e.WriteBatch(t.Context(), roomsensor.Batch{
		Rows: rows, Seen: []roomsensor.DeviceHeartbeat{{DeviceID: e.DeviceID, LastSeenAt: end}},
	})
	require.NoError(t, err)
}

// round moves the clock, evaluates the team, sends, and returns the mails.
func (e *env) round(t *testing.T, at string) []received {
	t.Helper()
	e.now = storetest.At(at)
	require.NoError(t, e.EvaluateDue(t.Context()))
	require.NoError(t, e.SendDue(t.Context()))
	return e.mail.take()
}

// alerts returns the texts of all alerts, with their outcomes.
func (e *env) alerts(t *testing.T) (texts []string) {
	t.Helper()
	all, err := e.store.TeamAlerts(t.Context(), e.TeamID, time.Time{})
	require.NoError(t, err)
	for i := range all {
		texts = append(texts, string(all[i].Rule)+" "+string(all[i].Outcome))
	}
	return texts
}

// quiet marks the morning reports until now as written, for tests of alerts.
func (e *env) quiet(t *testing.T) {
	t.Helper()
	e.Exec(t, `INSERT INTO alert_rounds (team_id, reported_at, nights_at) VALUES ($1, '2027-01-01Z', '2027-01-01Z')`, e.TeamID)
}

// TestAlertMails checks an alert about bad air from its begin to its end: one mail each, with what to do and a link that
// stops the mails.
func TestAlertMails(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.quiet(t)
	e.assign(t, "Ana Ruiz", "2026-11-01T00:00:00Z")
	e.member(t, "coach", alerting.MailChoice{Alerts: true})
	e.member(t, "other", alerting.MailChoice{Morning: true})

	e.measure(t, "2026-11-25T12:00:00Z", "2026-11-25T12:15:00Z", 1600)
	require.Empty(t, e.round(t, "2026-11-25T12:16:00Z"), "bad for 15 minutes only")
	e.measure(t, "2026-11-25T12:15:00Z", "2026-11-25T12:20:00Z", 1600)
	mails := e.round(t, "2026-11-25T12:21:00Z")
	require.Len(t, mails, 1)
	require.Equal(t, "coach@example.com", mails[0].to)
	for _, part := range []string{
		"Room 12 (Ana Ruiz) has bad air: CO₂ above 1400 ppm, since Wed 25 Nov, 13:00. Air the room.",
		"From: \"Room sensors\" <rooms@example.com>", "Alerts: https://rooms.example.com/teams/" + e.TeamID.String() + "/alerts",
		"List-Unsubscribe: <https://rooms.example.com/mails/stop/", "List-Unsubscribe-Post: List-Unsubscribe=One-Click",
		"Content-Type: text/html", "for the team Riverside",
	} {
		require.Contains(t, mails[0].text, part)
	}
	require.NotContains(t, mails[0].text, alerting.MailStopMark)
	require.Empty(t, e.round(t, "2026-11-25T12:23:00Z"), "it goes on")

	// It ends and begins again within 15 minutes: one mail has both.
	e.measure(t, "2026-11-25T12:20:00Z", "2026-11-25T12:25:00Z", 800)
	require.Empty(t, e.round(t, "2026-11-25T12:26:00Z"))
	require.Equal(t, []string{"bad over"}, e.alerts(t))
	e.measure(t, "2026-11-25T12:25:00Z", "2026-11-25T12:30:00Z", 800)
	mails = e.round(t, "2026-11-25T12:36:00Z")
	require.Len(t, mails, 1)
	require.Contains(t, mails[0].text, "Over: Room 12 (Ana Ruiz) has bad air: CO₂ above 1400 ppm, from Wed 25 Nov, 13:00 to Wed 25 Nov, 13:26.")
	require.Empty(t, e.round(t, "2026-11-25T13:00:00Z"))
}

// TestRetiredDevice checks that the alerts about a device end when it is retired, and that none begins about its last
// night.
func TestRetiredDevice(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.assign(t, "Ana Ruiz", "2026-11-01T00:00:00Z")
	silent := e.NewDevice(t, "dev:2")
	e.Exec(t, `UPDATE device_state SET last_seen_at = '2026-11-24 12:00Z' WHERE device_id = $1`, silent)
	e.measure(t, "2026-11-25T12:00:00Z", "2026-11-25T12:20:00Z", 1600)
	e.round(t, "2026-11-25T12:21:00Z")
	require.ElementsMatch(t, []string{"bad ", "silent ", "coverage "}, e.alerts(t))
	for _, device := range []uuid.UUID{e.DeviceID, silent} {
		_, err := e.RetireDevice(t.Context(), e.TeamID, device, storetest.At("2026-11-26T05:00:00Z"))
		require.NoError(t, err)
	}
	e.round(t, "2026-11-26T10:00:00Z")
	require.ElementsMatch(t, []string{"bad unknown", "silent over", "coverage over"}, e.alerts(t))
}

// TestMailFormat checks that a mail has the format that its reader chose, also if others read another one.
func TestMailFormat(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.assign(t, "Ben Lee", "2026-11-01T00:00:00Z")
	wants := alerting.MailChoice{Alerts: true, Morning: true}
	for name, format := range map[string]string{"coach": "true", "other": "NULL"} {
		e.Exec(t, `UPDATE users SET fahrenheit = `+format+`, hour12 = `+format+`, month_first = `+format+` WHERE id = $1`,
			e.member(t, name, wants))
	}
	e.measureMetric(t, "2026-11-24T21:00:00Z", "2026-11-25T12:20:00Z", roomsensor.Temp, 30)
	texts := map[string]string{}
	for _, mail := range e.round(t, "2026-11-25T12:21:00Z") {
		texts[mail.to] += mail.text
	}
	for _, part := range []string{
		"Temperature above 80.6 °F, since Wed Nov 25, ", "in the night of Tue Nov 24, 2026", "Temperature was above 80.6 °F for 9 h",
	} {
		require.Contains(t, texts["coach@example.com"], part)
	}
	for _, part := range []string{
		"Temperature above 27 °C, since Wed 25 Nov, ", "in the night of Tue 24 Nov 2026", "Temperature was above 27 °C for 9 h",
	} {
		require.Contains(t, texts["other@example.com"], part)
		require.NotContains(t, texts["coach@example.com"], part)
	}
}

// TestLateData checks that an alert about air needs fresh readings, and that late ones withdraw alerts.
func TestLateData(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.quiet(t)
	e.measure(t, "2026-11-25T10:00:00Z", "2026-11-25T11:00:00Z", 1600)
	require.Empty(t, e.round(t, "2026-11-25T12:00:00Z"))
	require.Empty(t, e.alerts(t), "the readings are an hour old")

	// A gap of 20 minutes does not end bad air. The readings of the gap arrive late, and were good.
	e.measure(t, "2026-11-25T12:00:00Z", "2026-11-25T12:10:00Z", 1600)
	e.measure(t, "2026-11-25T12:30:00Z", "2026-11-25T12:35:00Z", 1600)
	e.round(t, "2026-11-25T12:35:00Z")
	require.Equal(t, []string{"bad "}, e.alerts(t))
	e.measure(t, "2026-11-25T12:15:00Z", "2026-11-25T12:25:00Z", 700)
	e.round(t, "2026-11-25T12:37:00Z")
	require.Equal(t, []string{"bad retracted"}, e.alerts(t))

	// Without fresh readings, nobody knows.
	e.measure(t, "2026-11-25T12:35:00Z", "2026-11-25T12:55:00Z", 1600)
	e.round(t, "2026-11-25T12:56:00Z")
	require.Equal(t, []string{"bad ", "bad retracted"}, e.alerts(t))
	e.round(t, "2026-11-25T13:40:00Z")
	require.Equal(t, []string{"bad unknown", "bad retracted"}, e.alerts(t))

	// The unit sends nothing for 3 hours, and then sends again.
	e.round(t, "2026-11-25T15:55:00Z")
	require.Equal(t, []string{"silent ", "bad unknown", "bad retracted"}, e.alerts(t))
	e.measure(t, "2026-11-25T13:00:00Z", "2026-11-25T16:00:00Z", 700)
	e.round(t, "2026-11-25T16:00:00Z")
	require.Equal(t, []string{"silent over", "bad unknown", "bad retracted"}, e.alerts(t))
}

// TestCoverage checks that the coverage of a night is judged an hour after its end, and that late readings withdraw it.
func TestCoverage(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.Exec(t, `INSERT INTO alert_rounds (team_id, reported_at) VALUES ($1, '2027-01-01Z')`, e.TeamID)
	e.Exec(t, `UPDATE teams SET alert_silent = 0 WHERE id = $1`, e.TeamID)
	e.assign(t, "Ana Ruiz", "2026-11-24T12:00:00Z")
	e.Exec(t, `UPDATE assignments SET ended_at = '2026-11-24T23:00:00Z'`)
	e.assign(t, "Ben Ode", "2026-11-24T23:00:00Z")                    // The room has one alert all the same.
	e.measure(t, "2026-11-24T21:00:00Z", "2026-11-25T02:00:00Z", 700) // 5 of 9 hours.
	e.round(t, "2026-11-25T06:59:00Z")
	require.Empty(t, e.alerts(t), "the night ended 59 minutes ago")
	e.round(t, "2026-11-25T07:14:00Z")
	require.Equal(t, []string{"coverage "}, e.alerts(t))
	all, err := e.store.TeamAlerts(t.Context(), e.TeamID, time.Time{})
	require.NoError(t, err)
	require.Equal(t, "60 of 108 arrived", all[0].Detail)

	e.measure(t, "2026-11-25T02:00:00Z", "2026-11-25T06:00:00Z", 700)
	e.round(t, "2026-11-25T07:20:00Z")
	require.Equal(t, []string{"coverage "}, e.alerts(t), "nights are read every 15 minutes")
	e.round(t, "2026-11-25T07:29:00Z")
	require.Equal(t, []string{"coverage retracted"}, e.alerts(t))

	// The next night has nothing, the one after it is complete.
	e.round(t, "2026-11-26T07:01:00Z")
	require.Equal(t, []string{"coverage ", "coverage retracted"}, e.alerts(t))
	e.measure(t, "2026-11-26T21:00:00Z", "2026-11-27T06:00:00Z", 700)
	e.round(t, "2026-11-27T07:01:00Z")
	require.Equal(t, []string{"coverage over", "coverage retracted"}, e.alerts(t))

	e.Exec(t, `UPDATE teams SET alert_coverage = 100 WHERE id = $1`, e.TeamID)
	e.Exec(t, `DELETE FROM readings WHERE bucket_at = '2026-11-26T22:00:00Z'`)
	e.round(t, "2026-11-27T08:00:00Z")
	e.Exec(t, `UPDATE teams SET alert_coverage = 0 WHERE id = $1`, e.TeamID)
	e.round(t, "2026-11-27T08:02:00Z")
	require.Equal(t, "coverage off", e.alerts(t)[0])
}

// TestRejects checks the alert about a unit whose readings are rejected.
func TestRejects(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.quiet(t)
	reject := func(at string, n int) {
		e.Exec(t, `INSERT INTO rejected_uploads (received_at, stream_sequence, reason, detail, team_id, unit, payload)
			VALUES ($1, $2, 'unknown_unit', 'x', $3, 'dev:77', 'x')`, storetest.At(at), n, e.TeamID)
	}
	reject("2026-11-25T11:00:00Z", 1)
	reject("2026-11-25T11:59:00Z", 2)
	e.round(t, "2026-11-25T12:00:00Z")
	require.Empty(t, e.alerts(t))
	reject("2026-11-25T12:01:00Z", 3)
	e.round(t, "2026-11-25T12:02:00Z")
	all, err := e.store.TeamAlerts(t.Context(), e.TeamID, time.Time{})
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.Equal(t, "dev:77", all[0].Name)
	require.Equal(t, "unknown_unit", all[0].Detail)
	for n, minute := range []string{"12:30", "12:59", "13:28", "13:55"} {
		reject("2026-11-25T"+minute+":00Z", 4+n)
		e.round(t, "2026-11-25T"+minute+":30Z")
	}
	all, err = e.store.TeamAlerts(t.Context(), e.TeamID, time.Time{})
	require.NoError(t, err)
	require.Equal(t, storetest.At("2026-11-25T11:00:00Z"), all[0].Since, "a round reads the last rejects only")
	e.Exec(t, `UPDATE rejected_uploads SET replayed_at = now()`)
	e.round(t, "2026-11-25T13:57:00Z")
	require.Equal(t, []string{"rejects over"}, e.alerts(t))
}

// TestReplicas checks that several processes write and send each mail once.
func TestReplicas(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.quiet(t)
	const members = 20
	for i := range members {
		e.member(t, "m"+string(rune('a'+i)), alerting.MailChoice{Alerts: true})
	}
	e.measure(t, "2026-11-25T12:00:00Z", "2026-11-25T12:20:00Z", 1600)
	e.now = storetest.At("2026-11-25T12:21:00Z")
	var group sync.WaitGroup
	for range 4 {
		replica := e.replica(t, e.mail.url)
		group.Go(func() {
			for range 3 {
				if err := replica.EvaluateDue(t.Context()); err != nil {
					t.Error(err)
				}
				if err := replica.SendDue(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	to := map[string]int{}
	for _, m := range e.mail.take() {
		to[m.to]++
	}
	require.Len(t, to, members)
	for address, n := range to {
		require.Equal(t, 1, n, address)
	}
	require.Equal(t, []string{"bad "}, e.alerts(t))
}

// TestMailServerAway checks that a mail waits while the server is unavailable or refuses for now, and that one that the server will
// never accept is given up and shown.
func TestMailServerAway(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.quiet(t)
	e.member(t, "coach", alerting.MailChoice{Alerts: true})
	e.member(t, "gone", alerting.MailChoice{Alerts: true})
	away := e.replica(t, "smtp://127.0.0.1:1")
	e.measure(t, "2026-11-25T12:00:00Z", "2026-11-25T12:20:00Z", 1600)
	e.now = storetest.At("2026-11-25T12:21:00Z")
	require.NoError(t, away.EvaluateDue(t.Context()))
	require.NoError(t, away.SendDue(t.Context()))
	failures := func() (reasons []string) {
		found, err := e.MailFailures(t.Context(), e.TeamID, time.Time{})
		require.NoError(t, err)
		for _, f := range found {
			require.NotEmpty(t, f.Reason)
			reasons = append(reasons, strings.TrimSuffix(f.To, "@example.com")+map[bool]string{true: " given up"}[f.GaveUp])
		}
		return reasons
	}
	require.ElementsMatch(t, []string{"coach", "gone"}, failures())
	require.NoError(t, e.SendDue(t.Context()))
	require.Empty(t, e.mail.take(), "not before the delay is over")

	e.mail.mu.Lock()
	e.mail.answer = func(to string) error {
		if strings.HasPrefix(to, "gone") {
			return &smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 1, 1}, Message: "No such user"}
		}
		return &smtp.SMTPError{Code: 451, EnhancedCode: smtp.EnhancedCode{4, 7, 1}, Message: "Try again later"}
	}
	e.mail.mu.Unlock()
	require.Empty(t, e.round(t, "2026-11-25T12:25:00Z"))
	require.ElementsMatch(t, []string{"coach", "gone given up"}, failures())
	e.mail.mu.Lock()
	e.mail.answer = nil
	e.mail.mu.Unlock()
	mails := e.round(t, "2026-11-25T12:32:00Z")
	require.Len(t, mails, 1)
	require.Equal(t, "coach@example.com", mails[0].to)
	require.Equal(t, []string{"gone given up"}, failures())
	state, err := e.Outbox(t.Context(), time.Time{}, e.now)
	require.NoError(t, err)
	require.Equal(t, int64(1), state.Failed)
	require.Zero(t, state.Waiting)
	require.Equal(t, 2, e.Number(t, `SELECT count(*) FROM mails WHERE done_at IS NOT NULL AND plain IS NULL`), "no text stays")
}

// TestGiveUp checks that a mail is given up after a day.
func TestGiveUp(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.quiet(t)
	e.member(t, "coach", alerting.MailChoice{Alerts: true})
	e.Notifier = e.replica(t, "smtp://127.0.0.1:1")
	e.measure(t, "2026-11-25T12:00:00Z", "2026-11-25T12:20:00Z", 1600)
	e.round(t, "2026-11-25T12:21:00Z")
	e.round(t, "2026-11-26T12:20:00Z")
	require.Zero(t, e.Number(t, `SELECT count(*) FROM mails WHERE done_at IS NOT NULL`))
	e.round(t, "2026-11-26T13:30:00Z")
	require.Equal(t, 1, e.Number(t, `SELECT count(*) FROM mails WHERE done_at IS NOT NULL AND error IS NOT NULL`))
}

// TestMailRights checks that a mail is not sent to somebody who left, was disabled or stopped the mails after it was
// written.
func TestMailRights(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.quiet(t)
	var ids []uuid.UUID
	for _, name := range []string{"stays", "left", "disabled", "stopped"} {
		ids = append(ids, e.member(t, name, alerting.MailChoice{Alerts: true}))
	}
	e.measure(t, "2026-11-25T12:00:00Z", "2026-11-25T12:20:00Z", 1600)
	e.now = storetest.At("2026-11-25T12:21:00Z")
	require.NoError(t, e.EvaluateDue(t.Context()))
	e.Exec(t, `DELETE FROM memberships WHERE user_id = $1`, ids[1])
	e.Exec(t, `UPDATE users SET disabled_at = now() WHERE id = $1`, ids[2])
	var stop uuid.UUID
	require.NoError(t, e.SQL.QueryRow(t.Context(), `SELECT stop FROM mail_choices WHERE user_id = $1`, ids[3]).Scan(&stop))
	require.NoError(t, e.StopMails(t.Context(), stop))
	require.ErrorIs(t, e.StopMails(t.Context(), uuid.New()), roomsensor.ErrNotFound)
	require.NoError(t, e.SendDue(t.Context()))
	mails := e.mail.take()
	require.Len(t, mails, 1)
	require.Equal(t, "stays@example.com", mails[0].to)
}

// TestMorning checks the morning mail: last night by person, what changed through late readings, once a day.
func TestMorning(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.Exec(t, `UPDATE teams SET mail_weekday = 4 WHERE id = $1`, e.TeamID) // Thursday
	e.assign(t, "Ana Ruiz", "2026-11-20T12:00:00Z")
	e.member(t, "coach", alerting.MailChoice{Morning: true, Weekly: true})
	e.measure(t, "2026-11-23T21:00:00Z", "2026-11-24T06:00:00Z", 700)
	e.measure(t, "2026-11-24T21:00:00Z", "2026-11-24T22:00:00Z", 700)
	require.Empty(t, e.round(t, "2026-11-25T06:29:00Z"), "not yet: a minute before 07:30 in Berlin, and late for the day before")
	mails := e.round(t, "2026-11-25T06:31:00Z")
	require.Len(t, mails, 1)
	require.Contains(t, mails[0].text, "Nothing is known of the bedroom in the night of Tue 24 Nov 2026")
	require.Contains(t, mails[0].text, "- Ana Ruiz: Only 12 of 108 readings arrived")
	require.NotContains(t, mails[0].text, "Changed since")
	require.Empty(t, e.round(t, "2026-11-25T06:33:00Z"), "once a day")

	// The rest of the night arrives late, and was bad. The next night is good.
	e.measure(t, "2026-11-24T22:00:00Z", "2026-11-25T06:00:00Z", 1500)
	e.measure(t, "2026-11-25T21:00:00Z", "2026-11-26T06:00:00Z", 700)
	mails = e.round(t, "2026-11-26T06:31:00Z")
	require.Len(t, mails, 2, "the morning mail and, on Thursday, the weekly summary")
	morning, weekly := mails[0], mails[1]
	if strings.Contains(morning.text, "the last 7 nights") {
		morning, weekly = weekly, morning
	}
	require.Contains(t, morning.text, "The bedroom had good air in the night of Wed 25 Nov 2026")
	require.Contains(t, morning.text, "- Ana Ruiz, night of Tue 24 Nov 2026: was unknown, is bad. CO₂ was above 1400 ppm for 8 h")
	require.Contains(t, weekly.text, "Ana Ruiz: 1 bad, 0 stuffy, 2 good, 3 unknown of 6 nights")

	require.Empty(t, e.round(t, "2026-11-27T13:00:00Z"), "6 hours late, nobody wants it any more")
	round, err := e.store.AlertRound(t.Context(), e.TeamID)
	require.NoError(t, err)
	require.Equal(t, "Wed 25 Nov 2026", round.Report.Night)
	require.True(t, round.SendsMails)

	// Without a server, the report is on the page.
	e.Notifier = e.replica(t, "")
	require.Empty(t, e.round(t, "2026-11-28T06:31:00Z"))
	round, err = e.store.AlertRound(t.Context(), e.TeamID)
	require.NoError(t, err)
	require.Equal(t, "Fri 27 Nov 2026", round.Report.Night)
	require.False(t, round.SendsMails)
	require.Zero(t, e.Number(t, `SELECT count(*) FROM mails WHERE done_at IS NULL`))
}

// TestSMTPLogin checks that a mail goes through STARTTLS with a login, and that a server that does not have the certificate
// gets neither.
func TestSMTPLogin(t *testing.T) {
	t.Parallel()
	files := tlstest.New(t, "localhost")
	server := startMail(t, &files)
	_, port, err := net.SplitHostPort(strings.TrimPrefix(server.url, "smtp://"))
	require.NoError(t, err)
	send := func(login, ca string) error {
		sender, err := notify.NewSender(&config.Mail{
			SMTPURL: config.Secret("smtp://" + login + "@localhost:" + port), SMTPCA: ca, MailFrom: "rooms@example.com",
		})
		require.NoError(t, err)
		return sender.Send(t.Context(), &alerting.Mail{To: "coach@example.com", Subject: "s", Plain: "p", HTML: "h"}, "https://x/y")
	}
	require.NoError(t, send("rooms:p%40ss%20word", files.CA))
	require.Len(t, server.take(), 1)
	require.ErrorContains(t, send("rooms:wrong", files.CA), "535")
	require.ErrorContains(t, send("rooms:p%40ss%20word", ""), "certificate")
	require.Empty(t, server.take())
}

// TestFailedTeam checks that a team whose evaluation fails does not keep the others from theirs.
func TestFailedTeam(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.quiet(t)
	e.Exec(t, `INSERT INTO teams (name) VALUES ('other')`)
	e.Exec(t, `UPDATE alert_rounds SET reported = '[]' WHERE team_id = $1`, e.TeamID)
	for _, at := range []string{"2026-11-25T12:00:00Z", "2026-11-25T12:02:00Z"} {
		e.round(t, at)
		require.Equal(t, 2, e.Number(t, `SELECT count(*) FROM alert_rounds WHERE attempted_at = '`+at+`'`))
		require.Equal(t, 1, e.Number(t, `SELECT count(*) FROM alert_rounds WHERE evaluated_at = '`+at+`'`))
	}
}

// TestManyAlerts checks that an outage with more alerts than are open at most, and rejects of more units than a round
// reads, hide no bad air and end no other alert.
func TestManyAlerts(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.quiet(t)
	e.Exec(t, `INSERT INTO rejected_uploads (received_at, stream_sequence, reason, detail, team_id, unit, payload)
		SELECT at, 1, 'unknown_unit', 'x', $1, 'dev:77', 'x' FROM unnest('{2026-11-25 11:00Z, 2026-11-25 12:20Z}'::timestamptz[]) at`,
		e.TeamID)
	e.round(t, "2026-11-25T12:20:00Z")
	require.Equal(t, []string{"rejects "}, e.alerts(t))
	e.Exec(t, `INSERT INTO rejected_uploads (received_at, stream_sequence, reason, detail, team_id, unit, payload)
		SELECT '2026-11-25 12:21Z', n, 'unknown_unit', 'x', $1, 'dev:' || 1000 + n, 'x' FROM generate_series(2, $2 + 1) n`,
		e.TeamID, alerting.MaxAlerts)
	e.Exec(t, `INSERT INTO devices (team_id, hardware_id) SELECT $1, 'dev:' || 1000 + n FROM generate_series(1, 1001) n`, e.TeamID)
	e.Exec(t, `UPDATE device_state SET last_seen_at = '2026-11-25 06:00Z'`)
	e.measure(t, "2026-11-25T12:00:00Z", "2026-11-25T12:20:00Z", 1600)
	for _, at := range []string{"2026-11-25T12:22:00Z", "2026-11-25T12:24:00Z"} {
		e.round(t, at)
		require.Equal(t, 1, e.Number(t, `SELECT count(*) FROM alerts WHERE rule = 'bad' AND ended_at IS NULL`))
		require.Equal(t, 1, e.Number(t, `SELECT count(*) FROM alerts WHERE rule = 'rejects' AND ended_at IS NULL`))
		require.Equal(t, alerting.MaxAlerts-1, e.Number(t, `SELECT count(*) FROM alerts WHERE rule = 'silent'`))
	}
	e.measure(t, "2026-11-25T12:20:00Z", "2026-11-25T12:25:00Z", 700)
	e.round(t, "2026-11-25T12:26:00Z")
	require.Equal(t, 1, e.Number(t, `SELECT count(*) FROM alerts WHERE rule = 'bad' AND outcome = 'over'`))
	require.Equal(t, 1, e.Number(t, `SELECT count(*) FROM alerts WHERE rule = 'rejects' AND ended_at IS NULL`))
}

// TestAlertTrim checks that a team cannot fill the table of alerts.
func TestAlertTrim(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.quiet(t)
	e.Exec(t, `INSERT INTO alerts (team_id, rule, subject, detail, since, noted_at, ended_at, outcome)
		SELECT $1, 'bad', n::text, 'x', '2026-11-01Z', '2026-11-01Z', timestamptz '2026-11-01Z' + n * interval '1 second', 'over'
		FROM generate_series(1, 10002) n`, e.TeamID)
	e.measure(t, "2026-11-25T12:00:00Z", "2026-11-25T12:20:00Z", 1600)
	e.round(t, "2026-11-25T12:21:00Z")
	require.Equal(t, 10001, e.Number(t, `SELECT count(*) FROM alerts`))
	require.Zero(t, e.Number(t, `SELECT count(*) FROM alerts WHERE subject IN ('1', '2')`))
}
