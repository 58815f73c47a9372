package team

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/dashboard/page"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/roomsensor/accounts"
	"roomsensor/internal/roomsensor/alerting"
	"roomsensor/internal/wording"
)

// Alerts reads alerts, and which mails people want.
type Alerts interface {
	TeamAlerts(ctx context.Context, teamID uuid.UUID, since time.Time) ([]alerting.Alert, error)
	AlertRound(ctx context.Context, teamID uuid.UUID) (alerting.Round, error)
	MailChoice(ctx context.Context, teamID, userID uuid.UUID) (alerting.MailChoice, error)
	ChooseMails(ctx context.Context, teamID uuid.UUID, c alerting.MailChoice, now time.Time) error
	MailFailures(ctx context.Context, teamID uuid.UUID, since time.Time) ([]alerting.MailFailure, error)
	MailTeam(ctx context.Context, stop uuid.UUID) (name string, err error)
	StopMails(ctx context.Context, stop uuid.UUID) error
}

const (
	// alertsReach is how far back the page shows alerts that ended, and mails that failed.
	alertsReach = 7 * 24 * time.Hour
	// maxEnded is how many alerts that ended the page shows.
	maxEnded = 100
)

// alertsView is the data of the page of alerts.
type alertsView struct {
	Headline    string
	Open, Ended []alertRow
	Late        bool // nobody evaluates alerts
	Round       alerting.Round
	Choice      alerting.MailChoice
	Failures    []alerting.MailFailure
	Rules       []string   // in words
	MailAt      string     // with the zone
	Form        url.Values // the fields of the rules, as entered
	Was         string     // the fields as they are stored
	Numbers     []numberField
	Days        []string // of the week
	Errors      page.FormErrors
}

// numberField is a rule in the form.
type numberField struct{ Name, Label, Value, Error string }

// addNumbers adds the fields of the rules that are numbers.
func (view *alertsView) addNumbers() {
	for _, f := range []numberField{
		{Name: "bad", Label: "Bad air in a room, in minutes"},
		{Name: "silent", Label: "A device sends nothing, in minutes"},
		{Name: "coverage", Label: "Readings of a night that must arrive, in percent"},
		{Name: "rejects", Label: "Readings are rejected, in minutes"},
	} {
		f.Value, f.Error = view.Form.Get(f.Name), view.Errors[f.Name]
		view.Numbers = append(view.Numbers, f)
	}
}

// alertRow is an alert.
type alertRow struct {
	Text, Do, Link string
	Bad            bool // about bad air
	Since          time.Time
	EndedAt        *time.Time
	Outcome        string
}

// ShowAlerts shows what is wrong now, what was, and the morning report.
func (p *Pages) ShowAlerts(ctx context.Context, v *page.Visit) error {
	view, err := p.alertsView(ctx, v, alertForm(&v.Team), nil)
	if err != nil {
		return err
	}
	return v.Render("alerts", view)
}

func (p *Pages) alertsView(
	ctx context.Context, v *page.Visit, form url.Values, errs page.FormErrors,
) (*alertsView, error) {
	view := &alertsView{
		Form: form, Was: alertForm(&v.Team).Encode(), Rules: ruleTexts(&v.Team.Alerts), Days: weekdays(),
		MailAt: v.Format().Clock(v.Team.Alerts.MailAt) + " (" + v.Zone().String() + ")", Errors: errs,
	}
	view.addNumbers()
	all, err := p.backend.TeamAlerts(ctx, v.Team.ID, v.Now.Add(-alertsReach))
	if err != nil {
		return nil, err
	}
	for i := range all {
		switch row := newAlertRow(v, &all[i]); {
		case row.EndedAt == nil:
			view.Open = append(view.Open, row)
		case len(view.Ended) < maxEnded:
			view.Ended = append(view.Ended, row)
		}
	}
	if view.Round, err = p.backend.AlertRound(ctx, v.Team.ID); err != nil {
		return nil, err
	}
	view.Late = v.Now.Sub(view.Round.At) > alerting.Late
	switch {
	case len(view.Open) > 0:
		view.Headline = wording.Plural(len(view.Open), "thing is wrong now", "things are wrong now")
	case view.Late:
		view.Headline = "Alerts are not evaluated now"
	default:
		view.Headline = "Nothing is wrong now"
	}
	if view.Choice, err = p.backend.MailChoice(ctx, v.Team.ID, v.User.ID); err != nil {
		return nil, err
	}
	if v.Role == roomsensor.Admin {
		view.Failures, err = p.backend.MailFailures(ctx, v.Team.ID, v.Now.Add(-alertsReach))
	}
	return view, err
}

func newAlertRow(v *page.Visit, a *alerting.Alert) alertRow {
	row := alertRow{
		Text: v.Format().AlertText(a), Do: wording.AlertDo(a), Since: a.Since, EndedAt: a.EndedAt,
		Outcome: wording.AlertEnded(a), Bad: a.Rule == alerting.RuleBad,
	}
	switch {
	case a.Rule == alerting.RuleRejects:
		if v.Role == roomsensor.Admin {
			row.Link = v.Path("rejects") + "?unit=" + url.QueryEscape(a.Subject)
		}
	case a.Rule == alerting.RuleCoverage:
		row.Link = v.Path("nights") + "?night=" + a.Since.In(v.Zone()).Format(time.DateOnly)
	case a.DeviceID != nil:
		row.Link = v.Path("devices", a.DeviceID.String())
	}
	return row
}

// ruleTexts says which alerts a team has.
func ruleTexts(s *alerting.Settings) (texts []string) {
	if s.Bad > 0 {
		text := "the air of a room is bad for " + wording.HoursAndMinutes(s.Bad)
		if s.BadAtNight {
			text += " at night"
		}
		texts = append(texts, text)
	}
	if s.Silent > 0 {
		texts = append(texts, "a device sends nothing for "+wording.HoursAndMinutes(s.Silent))
	}
	if s.Coverage > 0 {
		texts = append(texts, "less than "+strconv.Itoa(s.Coverage)+
			" % of the readings of a night arrived an hour after its end")
	}
	if s.Rejected > 0 {
		texts = append(texts, "readings of a unit are rejected for "+wording.HoursAndMinutes(s.Rejected))
	}
	return texts
}

func weekdays() (days []string) {
	for day := time.Sunday; day <= time.Saturday; day++ {
		days = append(days, day.String())
	}
	return days
}

// alertForm returns the fields of the rules as they are stored.
func alertForm(team *accounts.TeamSettings) url.Values {
	minutes := func(d time.Duration) string { return strconv.Itoa(int(d / time.Minute)) }
	s := &team.Alerts
	at := "always"
	if s.BadAtNight {
		at = "night"
	}
	return url.Values{
		"silent": {minutes(s.Silent)}, "bad": {minutes(s.Bad)}, "bad_at": {at}, "coverage": {strconv.Itoa(s.Coverage)},
		"rejects": {minutes(s.Rejected)}, "mail_at": {s.MailAt.String()}, "mail_day": {strconv.Itoa(int(s.MailDay))},
	}
}

// readAlerts parses the fields of the rules, and adds their errors.
func readAlerts(team *accounts.TeamSettings, form url.Values, errs page.FormErrors) {
	number := func(field, unit string, most int) int {
		n, err := strconv.Atoi(cmp.Or(form.Get(field), "0"))
		if err != nil || n < 0 || n > most {
			errs.Add(field, "Enter a whole number of "+unit+" from 0 to "+strconv.Itoa(most)+". 0 switches the rule off.")
		}
		return n
	}
	minutes := func(field string, most int) time.Duration {
		return time.Duration(number(field, "minutes", most)) * time.Minute
	}
	const day, week = 24 * 60, 7 * 24 * 60
	s := &team.Alerts
	s.Silent, s.Bad, s.Rejected = minutes("silent", week), minutes("bad", day), minutes("rejects", day)
	s.Coverage, s.BadAtNight = number("coverage", "percent", 100), form.Get("bad_at") == "night"
	var ok bool
	if s.MailAt, ok = roomsensor.ParseClock(form.Get("mail_at")); !ok {
		errs.Add("mail_at", "Enter a time from 00:00 to 23:59, such as 07:30.")
	}
	weekday, err := strconv.Atoi(form.Get("mail_day"))
	if err != nil || weekday < int(time.Sunday) || weekday > int(time.Saturday) {
		errs.Add("mail_day", "Choose a day of the week.")
	}
	s.MailDay = time.Weekday(weekday)
}

// SaveAlertRules changes the rules of a team.
func (p *Pages) SaveAlertRules(ctx context.Context, v *page.Visit) error {
	form, errs, note, err := p.save(ctx, v, alertForm, readAlerts)
	if len(errs) > 0 {
		view, err := p.alertsView(ctx, v, form, errs)
		if err != nil {
			return err
		}
		return v.Invalid("alerts", view)
	}
	if err != nil {
		return err
	}
	return v.Redirect(v.Path("alerts"), "The rules of alerts are saved. They count from the next minute on."+note)
}

// ChooseMails stores which mails the person wants.
func (p *Pages) ChooseMails(ctx context.Context, v *page.Visit) error {
	c := alerting.MailChoice{
		UserID: v.User.ID, Alerts: v.Form("alerts") != "", Morning: v.Form("morning") != "", Weekly: v.Form("weekly") != "",
	}
	if err := p.backend.ChooseMails(ctx, v.Team.ID, c, v.Now); err != nil {
		return err
	}
	message := "You get the mails that you chose, at " + v.User.Email + "."
	if !c.Alerts && !c.Morning && !c.Weekly {
		message = "You get no mails of this team."
	}
	return v.Redirect(v.Path("alerts"), message)
}

// stopView is the data of the page on which mails are stopped.
type stopView struct {
	Team    string // empty for a link that does not work any more
	Stopped bool
}

// ShowStop asks whether to stop the mails of a link. Programs that check links open it too, so that it changes nothing.
func (p *Pages) ShowStop(ctx context.Context, v *page.Visit) error {
	return p.stop(ctx, v, false)
}

// StopMails stops the mails of a link. Mail programs call it too (List-Unsubscribe-Post, RFC 8058).
func (p *Pages) StopMails(ctx context.Context, v *page.Visit) error {
	return p.stop(ctx, v, true)
}

// stop shows the page of a link, after it has stopped the mails if it should.
func (p *Pages) stop(ctx context.Context, v *page.Visit, now bool) error {
	view := stopView{Stopped: now}
	token, err := uuid.Parse(v.Echo.Param("stop"))
	if err != nil {
		return v.Write(http.StatusNotFound, "mails-stop", stopView{})
	}
	if view.Team, err = p.backend.MailTeam(ctx, token); err == nil && now {
		err = p.backend.StopMails(ctx, token)
	}
	if errors.Is(err, roomsensor.ErrNotFound) {
		return v.Write(http.StatusNotFound, "mails-stop", stopView{})
	}
	if err != nil {
		return err
	}
	return v.Render("mails-stop", view)
}
