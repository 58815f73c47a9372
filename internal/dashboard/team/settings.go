// Package team is the settings of a team and its audit log.
package team

import (
	"context"
	"net/url"
	"slices"
	"strings"

	"github.com/google/uuid"

	"roomsensor/internal/dashboard/page"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/roomsensor/accounts"
	"roomsensor/internal/roomsensor/airquality"
	"roomsensor/internal/timezone"
	"roomsensor/internal/wording"
)

// Backend has the settings and the audit log of a team.
type Backend interface {
	Settings
	Audit
	Alerts
}

// Pages are the pages about a team.
type Pages struct{ backend Backend }

// New returns the pages.
func New(backend Backend) *Pages { return &Pages{backend} }

// Settings changes what people set for their team.
type Settings interface {
	// UpdateTeamSettings changes a team with a function, which gets what is stored. Nothing changes if it fails, and its
	// error is returned as it is.
	UpdateTeamSettings(
		ctx context.Context, teamID uuid.UUID, change func(*accounts.TeamSettings) error,
	) (accounts.TeamSettings, error)
	Device(ctx context.Context, teamID, deviceID uuid.UUID) (roomsensor.Device, error)
}

// settingsView is the data of the page with the settings of a team.
type settingsView struct {
	Form   url.Values // the fields of the form, as entered
	Was    string     // the fields as they are stored
	Night  string
	Limits []limitFields
	Rules  []ruleRow
	Rule   ruleForm
	Zones  []string // for the person who may change them
	Errors page.FormErrors
}

// limitFields names the fields of a metric.
type limitFields struct {
	Metric, Name, Unit string
	Text               string // the limits in words
}

// limitEnds are the last parts of the names of the fields of a metric, in the order of roomsensor.NewLimit.
var limitEnds = [...]string{"_bad_low", "_warn_low", "_warn_high", "_bad_high"}

// formOf returns the fields of the settings as they are stored.
func formOf(team *accounts.TeamSettings) url.Values {
	form := url.Values{
		"name": {team.Name}, "time_zone": {team.TimeZone.String()},
		"night_start": {team.Night.Start.String()}, "night_end": {team.Night.End.String()},
	}
	for _, m := range roomsensor.Metrics {
		addLimit(form, m, team.Limits.Limits[m])
	}
	return form
}

func addLimit(form url.Values, m roomsensor.Metric, l airquality.Limit) {
	for i, x := range []*float32{l.Low.Bad, l.Low.Warn, l.High.Warn, l.High.Bad} {
		form.Set(m.String()+limitEnds[i], airquality.FormatLimit(x))
	}
}

// readLimit parses the fields of a metric.
func readLimit(form url.Values, m roomsensor.Metric) (airquality.Limit, error) {
	field := func(i int) string { return form.Get(m.String() + limitEnds[i]) }
	return airquality.NewLimit(m, field(0), field(1), field(2), field(3))
}

// ShowSettings shows the settings of a team.
func (p *Pages) ShowSettings(ctx context.Context, v *page.Visit) error {
	view, err := p.settingsView(ctx, v, formOf(&v.Team))
	if err != nil {
		return err
	}
	return v.Render("settings", view)
}

func (p *Pages) settingsView(ctx context.Context, v *page.Visit, form url.Values) (*settingsView, error) {
	view := &settingsView{
		Form: form, Was: formOf(&v.Team).Encode(), Zones: timezone.Names(), Errors: page.FormErrors{},
		Night: v.Format().Clock(v.Team.Night.Start) + " to " + v.Format().Clock(v.Team.Night.End),
	}
	for _, m := range roomsensor.Metrics {
		view.Limits = append(view.Limits, limitFields{
			m.String(), wording.MetricTexts[m].Name, wording.MetricTexts[m].Unit, wording.LimitText(m, v.Team.Limits.Limits[m]),
		})
	}
	return view, p.addRules(ctx, v, view)
}

// SaveSettings changes the settings of a team.
func (p *Pages) SaveSettings(ctx context.Context, v *page.Visit) error {
	form, errs, note, err := p.save(ctx, v, formOf, readSettings)
	if len(errs) > 0 {
		view, err := p.settingsView(ctx, v, form)
		if err != nil {
			return err
		}
		view.Errors = errs
		return v.Invalid("settings", view)
	}
	if err != nil {
		return err
	}
	return v.Redirect(v.Path("settings"), "The settings of the team are saved."+note)
}

// save changes a team by the form that fields returns for what is stored. It changes the fields that the person
// changed, so that what others changed meanwhile stays. If both changed the same one, nothing is saved, and its error
// says what the others did. note is what to add to the message of success.
func (p *Pages) save(
	ctx context.Context, v *page.Visit, fields func(*accounts.TeamSettings) url.Values,
	read func(*accounts.TeamSettings, url.Values, page.FormErrors),
) (form url.Values, errs page.FormErrors, note string, err error) {
	was, _ := url.ParseQuery(v.Form("was"))
	form, errs = fields(&v.Team), page.FormErrors{}
	for field := range form {
		form.Set(field, v.Form(field))
	}
	var merged []string // that others changed
	stored, err := p.backend.UpdateTeamSettings(ctx, v.Team.ID, func(team *accounts.TeamSettings) error {
		v.Team = *team
		var conflicts []string
		merged, conflicts = merge(form, was, fields(team))
		for _, field := range conflicts {
			errs.Add(errorField(field), p.conflict(ctx, v, fields(team).Get(field)))
		}
		read(team, form, errs)
		if len(errs) > 0 {
			return errRefused
		}
		return nil
	})
	if err == nil {
		v.Team = stored
	}
	if len(merged) > 0 {
		note = " What others changed meanwhile stays: " + strings.Join(merged, ", ") + "."
	}
	return form, errs, note, err
}

// errRefused ends the transaction of settings that are not valid.
var errRefused = roomsensor.Invalid("", "The settings are not valid.")

// merge replaces the fields of a form that the person did not change by what is stored. It returns those that others
// changed, and those that both changed to different values.
func merge(form, was, stored url.Values) (merged, conflicts []string) {
	for field := range stored {
		entered, before, now := form.Get(field), was.Get(field), stored.Get(field)
		switch {
		case !was.Has(field) || entered == now || before == now:
		case entered == before:
			form.Set(field, now)
			merged = append(merged, strings.ReplaceAll(field, "_", " "))
		default:
			conflicts = append(conflicts, field)
		}
	}
	slices.Sort(merged)
	return merged, conflicts
}

// errorField returns the name under which the error of a field is shown: the metric, for a limit.
func errorField(field string) string {
	for _, m := range roomsensor.Metrics {
		if strings.HasPrefix(field, m.String()) {
			return m.String()
		}
	}
	return field
}

// conflict says who changed a field meanwhile.
func (p *Pages) conflict(ctx context.Context, v *page.Visit, now string) string {
	who := "Somebody"
	entries, err := p.backend.TeamAudit(ctx, v.Team.ID, roomsensor.AuditQuery{Object: v.Team.ID.String(), Limit: 1})
	if err == nil && len(entries) > 0 {
		who = whoOf(&entries[0])
	}
	if now == "" {
		now = "nothing"
	}
	return who + " changed this to " + now + " after you opened the page. Save again to replace that."
}

// readSettings parses the fields, and adds their errors.
func readSettings(team *accounts.TeamSettings, form url.Values, errs page.FormErrors) {
	team.Name = form.Get("name")
	errs.AddCheck("name", "The name", roomsensor.CheckName(team.Name))
	if zone := errs.ReadZone(form.Get("time_zone")); zone != nil {
		team.TimeZone = zone
	}
	var err error
	team.Night, err = airquality.NewNightHours(form.Get("night_start"), form.Get("night_end"))
	errs.AddRule(err)
	for _, m := range roomsensor.Metrics {
		team.Limits.Limits[m], err = readLimit(form, m)
		errs.AddRule(err)
	}
}
