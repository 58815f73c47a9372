package rejects

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/dashboard/page"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/source"
	"roomsensor/internal/wording"
)

// Units finds and registers hardware units of a team.
type Units interface {
	// UnitHistory lists the installations of a unit in devices of a team, the oldest first.
	UnitHistory(ctx context.Context, teamID uuid.UUID, hardwareID string) ([]roomsensor.UnitHistory, error)
	// RegisterUnit creates a device with a unit. Its error is a HardwareConflictError if the unit is in another device,
	// which may be that of another team.
	RegisterUnit(ctx context.Context, d roomsensor.NewDevice, now time.Time) (uuid.UUID, error)
}

// unitReport says why a unit shows data or none. A unit of another team is like one that does not exist.
type unitReport struct {
	Unit     string
	Current  *roomsensor.UnitHistory  // where the unit is now; nil if it is in no device of the team
	Former   []roomsensor.UnitHistory // where it was, the newest first
	Silent   bool                     // it is in a device that has not reported recently
	Rejected *time.Time               // when its newest reject arrived; nil without one, or if the unit was not entered
	Filtered bool                     // the table of rejects may lack some of the unit
}

// CanRegister reports whether registering the unit would help.
func (r *unitReport) CanRegister() bool { return r.Current == nil && len(r.Former) == 0 }

// reportEntered finds out what is known about the unit that was entered, whatever else the filter selects.
func (p *Pages) reportEntered(ctx context.Context, v *page.Visit, f *rejectFilter) (*unitReport, error) {
	report, err := p.reportUnit(ctx, v, f.Unit)
	if err != nil {
		return nil, err
	}
	newest, err := p.backend.RejectGroups(ctx, v.Team.ID, roomsensor.RejectGroupQuery{Unit: f.unit, Limit: 1})
	if err != nil {
		return nil, err
	}
	if len(newest) > 0 {
		report.Rejected = &newest[0].Last
	}
	report.Filtered = f.reason != nil || f.source != nil
	return report, nil
}

// reportUnit finds out in which devices a unit is and was.
func (p *Pages) reportUnit(ctx context.Context, v *page.Visit, unit string) (*unitReport, error) {
	history, err := p.backend.UnitHistory(ctx, v.Team.ID, unit)
	if err != nil {
		return nil, err
	}
	report := &unitReport{Unit: unit}
	for i := range history {
		installation := roomsensor.Installation{From: history[i].From, To: history[i].To}
		if installation.Covers(v.Now) {
			report.Current = &history[i]
			report.Silent = roomsensor.StatusAt(v.Now, history[i].LastSeenAt) != roomsensor.Online
		} else {
			report.Former = append([]roomsensor.UnitHistory{history[i]}, report.Former...)
		}
	}
	return report, nil
}

// unitForm is the form that registers a unit, as it was entered.
type unitForm struct {
	Unit, Name, Tags, At string
	Sampling             roomsensor.Sampling
	Zone                 string
	Errors               page.FormErrors
}

// ShowUnitForm shows the form that registers a unit. Its sampling is that of the source from which the unit sends.
func (p *Pages) ShowUnitForm(ctx context.Context, v *page.Visit) error {
	filter, err := p.readRejectFilter(ctx, v)
	if err != nil {
		return err
	}
	form := unitForm{Unit: filter.Unit, Sampling: roomsensor.SamplingWhole, Zone: v.Zone().String()}
	switch {
	case filter.Source != nil:
		form.Sampling = source.SamplingOf(&filter.Source.Source)
	case filter.unit != nil:
		if form.Sampling, err = p.samplingOf(ctx, v, filter.Unit); err != nil {
			return err
		}
	}
	return v.Render("unit-new", form)
}

// samplingOf returns the sampling of the source from which the newest reject of a unit came.
func (p *Pages) samplingOf(ctx context.Context, v *page.Visit, unit string) (roomsensor.Sampling, error) {
	rejects, err := p.backend.TeamRejects(ctx, v.Team.ID, roomsensor.TeamRejectQuery{Unit: &unit, Limit: 1})
	if err != nil || len(rejects) == 0 {
		return roomsensor.SamplingWhole, err
	}
	newest, err := p.backend.TeamReject(ctx, v.Team.ID, rejects[0].ID)
	if err == nil && newest.Arrival.Source != nil {
		var s *roomsensor.ListedSource
		if s, err = v.FindSource(ctx, p.backend, newest.Arrival.Source.String()); err == nil {
			return source.SamplingOf(&s.Source), nil
		}
	}
	if errors.Is(err, roomsensor.ErrNotFound) {
		err = nil // The reject or the source was deleted.
	}
	return roomsensor.SamplingWhole, err
}

// RegisterUnit creates a device with a unit.
func (p *Pages) RegisterUnit(ctx context.Context, v *page.Visit) error {
	form := unitForm{
		Unit: wording.WithUnitPrefix(v.Form("unit")), Name: v.Form("name"), Tags: v.Form("tags"), At: v.Form("at"),
		Sampling: roomsensor.Sampling(cmp.Or(v.Form("sampling"), string(roomsensor.SamplingWhole))),
		Zone:     v.Zone().String(), Errors: page.FormErrors{},
	}
	device := form.read(v)
	if len(form.Errors) > 0 {
		return v.Invalid("unit-new", form)
	}
	id, err := p.backend.RegisterUnit(ctx, device, v.Now)
	if _, taken := errors.AsType[*roomsensor.HardwareConflictError](err); taken {
		form.Errors.Add("unit", "This unit cannot be registered: it may have been registered before. "+
			"Check the id on the unit. If it is right, ask your operator.")
		return v.Invalid("unit-new", form)
	}
	if err != nil {
		return err
	}
	groups, err := p.backend.RejectGroups(ctx, v.Team.ID, roomsensor.RejectGroupQuery{Unit: &form.Unit, Limit: 1})
	if err != nil {
		return err
	}
	if len(groups) > 0 {
		return v.Redirect(v.Path("rejects")+"?unit="+url.QueryEscape(form.Unit),
			"The unit "+form.Unit+" is registered. Replay its rejects below to store what arrived before.")
	}
	return v.Redirect(v.Path("devices", id.String()),
		"The device was added. Its readings appear here once unit "+form.Unit+
			" uploads with an upload credential of the team.")
}

// read checks the form and returns the device to create.
func (f *unitForm) read(v *page.Visit) roomsensor.NewDevice {
	d := roomsensor.NewDevice{
		TeamID: v.Team.ID, HardwareID: f.Unit, Sampling: f.Sampling, Metadata: map[string]string{},
	}
	if f.Sampling != roomsensor.SamplingWhole && f.Sampling != roomsensor.SamplingMean {
		f.Errors.Add("sampling", "Choose what its readings are.")
	}
	if !wording.IsUnit(f.Unit) {
		f.Errors.Add("unit", wording.WrongUnit)
	}
	if f.Name != "" {
		f.Errors.AddCheck("name", "The name", roomsensor.CheckName(f.Name))
		d.DisplayName = &f.Name
	}
	for line := range strings.Lines(f.Tags) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		key, value, ok := wording.ParseTag(line)
		if !ok {
			f.Errors.Add("tags", "Write one tag per line, as key=value, such as building=gym.")
		}
		d.Metadata[key] = value
	}
	f.Errors.AddCheck("tags", "A tag is not valid:", roomsensor.CheckMetadata(d.Metadata))
	d.InstalledAt = v.PastTime("at", f.At, f.Errors)
	return d
}
