package dashboard

import (
	"context"

	"github.com/google/uuid"

	"roomsensor/internal/httpedge"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/timezone"
)

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
	Errors                     formErrors
}

// thresholdField has the two fields of a metric, as the person entered them.
type thresholdField struct {
	Metric                string
	Name, Unit, Low, High string
}

func (s *server) showSettings(_ context.Context, v *visit) error {
	view := settingsView{
		Name: v.team.Name, TimeZone: v.zone().String(),
		Start: v.team.Night.Start.String(), End: v.team.Night.End.String(), Zones: timezone.Names(),
	}
	for _, m := range roomsensor.Metrics {
		view.Thresholds = append(view.Thresholds, newThresholdField(m,
			roomsensor.FormatLimit(v.team.Thresholds[m].Low), roomsensor.FormatLimit(v.team.Thresholds[m].High)))
	}
	return v.render("settings", view)
}

func newThresholdField(m roomsensor.Metric, low, high string) thresholdField {
	return thresholdField{
		Metric: m.String(), Name: metricTexts[m].name, Unit: metricTexts[m].unit, Low: low, High: high,
	}
}

func (s *server) saveSettings(ctx context.Context, v *visit) error {
	if err := v.checkForm(); err != nil {
		return err
	}
	view := settingsView{
		Name: v.form("name"), TimeZone: v.form("time_zone"), Start: v.form("night_start"), End: v.form("night_end"),
		Zones: timezone.Names(), Errors: formErrors{},
	}
	var settings roomsensor.TeamSettings
	for _, m := range roomsensor.Metrics {
		low, high := v.form(m.String()+"_low"), v.form(m.String()+"_high")
		view.Thresholds = append(view.Thresholds, newThresholdField(m, low, high))
		var err error
		settings.Thresholds[m], err = roomsensor.NewThreshold(m, low, high)
		view.Errors.addRule(err)
	}
	view.read(&settings)
	if len(view.Errors) > 0 {
		return v.invalid("settings", view)
	}
	_, err := s.backend.UpdateTeamSettings(ctx, v.team.ID, func(team *roomsensor.TeamSettings) error {
		settings.ID = team.ID
		*team = settings
		return nil
	})
	if err != nil {
		return err
	}
	return v.redirect(v.path("settings"), "The settings of the team are saved.")
}

// read parses the fields but for the thresholds, and adds their errors.
func (view *settingsView) read(settings *roomsensor.TeamSettings) {
	settings.Name = view.Name
	view.Errors.addCheck("name", "The name", roomsensor.CheckName(view.Name))
	var known bool
	if settings.TimeZone, known = timezone.Load(view.TimeZone); !known {
		view.Errors.add("time_zone", "Choose a time zone from the list, such as Europe/Berlin. "+
			httpedge.DidYouMean(httpedge.Closest(view.TimeZone, timezone.Names())))
	}
	var err error
	settings.Night, err = roomsensor.NewNightHours(view.Start, view.End)
	view.Errors.addRule(err)
}
