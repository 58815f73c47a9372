// Package team is the settings of a team and its audit log.
package team

import (
	"context"

	"github.com/google/uuid"

	"roomsensor/internal/dashboard/page"
	"roomsensor/internal/httpedge"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/timezone"
)

// Backend has the settings and the audit log of a team.
type Backend interface {
	Settings
	Audit
}

// Pages are the pages about a team.
type Pages struct{ backend Backend }

// New returns the pages.
func New(backend Backend) *Pages { return &Pages{backend} }

// Settings changes what people set for their team.
type Settings interface {
	// UpdateTeamSettings changes a team with a function, which gets what is stored. Nothing changes if it fails.
	UpdateTeamSettings(
		ctx context.Context, teamID uuid.UUID, change func(*roomsensor.TeamSettings) error,
	) (roomsensor.TeamSettings, error)
}

// settingsView is the data of the page with the settings of a team.
type settingsView struct {
	Name, TimeZone, Start, End string
	Thresholds                 []thresholdField
	Zones                      []string // for the person who may change them
	Errors                     page.FormErrors
}

// thresholdField has the two fields of a metric, as the person entered them.
type thresholdField struct {
	Metric                string
	Name, Unit, Low, High string
}

// ShowSettings shows the settings of a team.
func (p *Pages) ShowSettings(_ context.Context, v *page.Visit) error {
	view := settingsView{
		Name: v.Team.Name, TimeZone: v.Zone().String(),
		Start: v.Team.Night.Start.String(), End: v.Team.Night.End.String(), Zones: timezone.Names(),
	}
	for _, m := range roomsensor.Metrics {
		view.Thresholds = append(view.Thresholds, newThresholdField(m,
			roomsensor.FormatLimit(v.Team.Thresholds[m].Low), roomsensor.FormatLimit(v.Team.Thresholds[m].High)))
	}
	return v.Render("settings", view)
}

func newThresholdField(m roomsensor.Metric, low, high string) thresholdField {
	return thresholdField{
		Metric: m.String(), Name: page.MetricTexts[m].Name, Unit: page.MetricTexts[m].Unit, Low: low, High: high,
	}
}

// SaveSettings changes the settings of a team.
func (p *Pages) SaveSettings(ctx context.Context, v *page.Visit) error {
	if err := v.CheckForm(); err != nil {
		return err
	}
	view := settingsView{
		Name: v.Form("name"), TimeZone: v.Form("time_zone"), Start: v.Form("night_start"), End: v.Form("night_end"),
		Zones: timezone.Names(), Errors: page.FormErrors{},
	}
	var settings roomsensor.TeamSettings
	for _, m := range roomsensor.Metrics {
		low, high := v.Form(m.String()+"_low"), v.Form(m.String()+"_high")
		view.Thresholds = append(view.Thresholds, newThresholdField(m, low, high))
		var err error
		settings.Thresholds[m], err = roomsensor.NewThreshold(m, low, high)
		view.Errors.AddRule(err)
	}
	view.read(&settings)
	if len(view.Errors) > 0 {
		return v.Invalid("settings", view)
	}
	_, err := p.backend.UpdateTeamSettings(ctx, v.Team.ID, func(team *roomsensor.TeamSettings) error {
		settings.ID = team.ID
		*team = settings
		return nil
	})
	if err != nil {
		return err
	}
	return v.Redirect(v.Path("settings"), "The settings of the team are saved.")
}

// read parses the fields but for the thresholds, and adds their errors.
func (view *settingsView) read(settings *roomsensor.TeamSettings) {
	settings.Name = view.Name
	view.Errors.AddCheck("name", "The name", roomsensor.CheckName(view.Name))
	var known bool
	if settings.TimeZone, known = timezone.Load(view.TimeZone); !known {
		view.Errors.Add("time_zone", "Choose a time zone from the list, such as Europe/Berlin. "+
			httpedge.DidYouMean(httpedge.Closest(view.TimeZone, timezone.Names())))
	}
	var err error
	settings.Night, err = roomsensor.NewNightHours(view.Start, view.End)
	view.Errors.AddRule(err)
}
