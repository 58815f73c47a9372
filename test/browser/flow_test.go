package browser_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/client"
	"roomsensor/internal/roomsensor"
)

// The other views of flows.
var (
	phone = view{width: 390, scripts: true}
	plain = view{width: 1280} // without scripts
)

// flows are what people do, with the keyboard alone. The forms that work without scripts are tried without them, too.
var flows = []struct {
	name  string
	views []view
	test  func(*flow, *testing.T)
}{
	{"invite", []view{desktop, phone, plain}, (*flow).testInvite},
	{"sign out", []view{desktop, phone}, (*flow).testSignOut},
	{"assignments", []view{desktop, phone, plain}, (*flow).testAssignments},
	{"keys", []view{desktop, phone, plain}, (*flow).testKeys},
	{"unknown unit", []view{desktop, phone, plain}, (*flow).testUnknownUnit},
	{"source", []view{desktop, phone, plain}, (*flow).testSource},
	{"export", []view{desktop, phone, plain}, (*flow).testExport},
	{"overview", []view{desktop, phone, plain}, (*flow).testOverview},
	{"live tile", []view{desktop, phone}, (*flow).testLiveTile},
	{"device", []view{desktop, phone}, (*flow).testDevice},
	{"many", []view{desktop, phone, plain}, (*flow).testMany},
	{"alerts", []view{desktop, phone, plain}, (*flow).testAlerts},
	{"limits", []view{desktop, phone}, (*flow).testLimits},
	{"chart", []view{desktop, phone}, (*flow).testChart},
	{"spreadsheet", []view{desktop, phone, plain}, (*flow).testSpreadsheet},
	{"people", []view{desktop, phone, plain}, (*flow).testPeople},
	{"print", []view{desktop}, (*flow).testPrint},
	{"share", []view{desktop, phone, plain}, (*flow).testShare},
	{"notes", []view{desktop, phone, plain}, (*flow).testNotes},
}

// flow is a team of its own, in which somebody does something.
type flow struct {
	*site
	view view
	team uuid.UUID
	pool uuid.UUID // a device that is online, with readings of flowHistory
	unit string    // in the pool
	path string    // of the team's pages
}

// flowZone is the zone of the team. Its clocks are never set, so that each local time exists once.
var flowZone = time.FixedZone("Asia/Kolkata", 5*3600+1800)

// flowHistory is how far back the readings of the pool go. They end flowPause ago.
const (
	flowHistory = 3 * 24 * time.Hour
	flowPause   = 15 * time.Minute
)

// flowCO2 is the CO2 of the pool in a bucket, in SQL: 700 to 890 ppm. It differs from that of the buckets beside it.
const flowCO2 = `700 + 10 * (extract(epoch FROM bucket)::bigint / 300 % 20)`

// newFlow creates a team with two devices: the pool is online, and the sauna is stale.
func (s *site) newFlow(t *testing.T, v view) *flow {
	t.Helper()
	f := &flow{site: s, view: v, team: uuid.New(), pool: uuid.New(), unit: newUnit()}
	f.path = s.url + "/teams/" + f.team.String()
	s.exec(t, `INSERT INTO teams (id, name, time_zone) VALUES ($1, 'Harbor Club', $2)`, f.team, flowZone.String())
	sauna := uuid.New()
	for _, d := range []struct {
		id             uuid.UUID
		unit, name     string
		metadata, seen string
	}{
		{f.pool, f.unit, "Pool", `{"building": "gym"}`, "5 minutes"},
		{sauna, newUnit(), "Sauna", `{"building": "spa"}`, "5 hours"},
	} {
		s.exec(t, `INSERT INTO devices (id, team_id, hardware_id, display_name, metadata)
			VALUES ($1, $2, $3, $4, $5::jsonb)`, d.id, f.team, d.unit, d.name, d.metadata)
		s.exec(t, `UPDATE device_state SET last_seen_at = now() - $2::interval WHERE device_id = $1`, d.id, d.seen)
		s.exec(t, `INSERT INTO device_hardware (device_id, hardware_id) VALUES ($1, $2)`, d.id, d.unit)
	}
	s.exec(t, `INSERT INTO assignments (device_id, type, label, started_at, ended_at) VALUES
		($1, 'athlete', 'Ana Ruiz', now() - interval '9 days', NULL),
		($2, 'place', 'Old sauna', now() - interval '9 days', now() - interval '2 days')`, f.pool, sauna)
	s.exec(t, `INSERT INTO readings (device_id, bucket_at, measured_at, ingested_at, co2_ppm, temp_c)
		SELECT $1, bucket, bucket + interval '1 minute', bucket + interval '6 minutes', `+flowCO2+`, 21
		FROM generate_series(date_bin('5 minutes', now() - $2::interval, 'epoch'), now() - $3::interval, '5 minutes') bucket`,
		f.pool, flowHistory, flowPause)
	return f
}

var lastUnit atomic.Int64

// newUnit returns the hardware id of a unit that nobody has.
func newUnit() string { return fmt.Sprintf("dev:%d", 1_000_000_000+lastUnit.Add(1)) }

// as opens a tab in which a person with a role is signed in.
func (f *flow) as(t *testing.T, role roomsensor.Role) *tab {
	t.Helper()
	p := newTab(t, f.view)
	f.signIn(t, p, f.person(t, f.team, role))
	return p
}

// scan reads one row.
func (f *flow) scan(t *testing.T, into []any, sql string, arguments ...any) {
	t.Helper()
	require.NoError(t, f.sql.QueryRow(t.Context(), sql, arguments...).Scan(into...))
}

// status returns the status with which the API answers a request with a key.
func (f *flow) status(t *testing.T, key string) int {
	t.Helper()
	c, err := client.New(f.api+"/v1", key, client.WithMaxAttempts(1))
	require.NoError(t, err)
	_, err = c.Team(t.Context())
	if refused, ok := errors.AsType[*client.Error](err); ok {
		return refused.Status
	}
	require.NoError(t, err)
	return http.StatusOK
}

// requireStatus waits until the API answers with a status: processes remember keys for seconds.
func (f *flow) requireStatus(t *testing.T, status int, key string) {
	t.Helper()
	require.Eventually(t, func() bool { return f.status(t, key) == status }, patience, 100*time.Millisecond)
}

// upload sends readings of a unit with an upload credential, and waits until the receiver has stored them.
func (f *flow) upload(t *testing.T, credential, unit string, co2 int, at ...time.Time) {
	t.Helper()
	var readings []string
	for _, each := range at {
		readings = append(readings, fmt.Sprintf(`{"measured_at": %q, "co2_ppm": %d}`, each.UTC().Format(time.RFC3339), co2))
	}
	body := fmt.Sprintf(`{"hardware_id": %q, "readings": [%s]}`, unit, strings.Join(readings, ", "))
	f.send(t, f.uploads, credential, body)
}

// choose selects an entry of the next list with a label.
func (p *tab) choose(t *testing.T, label, entry string) {
	t.Helper()
	p.tabTo(t, label)
	// Not by its text: a list forgets the first letters if a busy machine is slow before the next one.
	index := evaluate[int](t, p, fmt.Sprintf(
		`[...document.activeElement.options].filter((o) => !o.disabled).findIndex((o) => o.text === %q)`, entry))
	p.press(t, kb.Home+strings.Repeat(kb.ArrowDown, max(0, index)))
	require.Equal(t, entry, evaluate[string](t, p, `document.activeElement.selectedOptions[0].text`))
}

// fillTime enters a local time into the next field with a label. A refused form begins in the field with the error, so
// that Tab reaches the day of the field: the arrows go back to the month.
func (p *tab) fillTime(t *testing.T, label string, at time.Time) {
	t.Helper()
	p.tabTo(t, label)
	p.press(t, strings.Repeat(kb.ArrowLeft, 6)+at.Format("01022006")+kb.Tab+at.Format("0304PM"))
	require.Equal(t, at.Format("2006-01-02T15:04"), evaluate[string](t, p, `document.activeElement.value`))
}

// expand opens the next part of the page with a name.
func (p *tab) expand(t *testing.T, name string) {
	t.Helper()
	p.tabTo(t, name)
	p.press(t, kb.Enter)
	require.True(t, evaluate[bool](t, p, `document.activeElement.parentElement.open`), name)
}

// requireText waits until the page shows a text. Pages without scripts do so at once.
func (p *tab) requireText(t *testing.T, text string) {
	t.Helper()
	p.wait(t, fmt.Sprintf(`document.body.innerText.includes(%q)`, text))
}

// wait waits until an expression is true.
func (p *tab) wait(t *testing.T, expression string) {
	t.Helper()
	ok := func() bool { return evaluate[bool](t, p, expression) }
	if !ok() {
		require.Eventually(t, ok, patience, 20*time.Millisecond, "%s is not true of:\n%s", expression, p.text(t))
	}
}

// copyText copies a text with the next button that copies, and checks that the page says so.
func (p *tab) copyText(t *testing.T, button string) {
	t.Helper()
	if !p.view.scripts {
		return // The page has no such button. People select the text.
	}
	// A browser with a window lets the page of the present tab write to the clipboard.
	_, err := chromedp.CallBrowser(p.within(t), browser.SetPermission, browser.SetPermissionParams{
		Permission: &browser.PermissionDescriptor{Name: "clipboard-write"}, Setting: browser.PermissionSettingGranted,
		BrowserContextID: chromedp.FromContext(p.ctx).BrowserContextID,
	})
	require.NoError(t, err)
	p.tabTo(t, button)
	p.do(t, chromedp.KeyEvent(kb.Enter))
	p.requireText(t, "Copied.")
}
