package dashboard

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/roomsensor"
)

// wrongUnit is the error of a field for a hardware id.
const wrongUnit = "A hardware id is dev: and 1 to 20 digits, such as dev:864475046552567. It is printed on the unit."

// Units finds and registers hardware units of a team.
type Units interface {
	// UnitHistory lists the installations of a unit in devices of a team, the oldest first.
	UnitHistory(ctx context.Context, teamID uuid.UUID, hardwareID string) ([]roomsensor.UnitHistory, error)
	// RegisterUnit creates a device with a unit. Its error is a HardwareConflictError if the unit is in another device,
	// which may be that of another team.
	RegisterUnit(ctx context.Context, d roomsensor.NewDevice, now time.Time) (uuid.UUID, error)
}

// unitOf returns the hardware id that a search is, with or without its prefix. It is empty for any other search.
func unitOf(search string) string {
	id := withUnitPrefix(strings.TrimSpace(search))
	if !roomsensor.IsHardwareID(id) {
		return ""
	}
	return id
}

// withUnitPrefix returns a hardware id that a person entered, with the prefix that people may leave out.
func withUnitPrefix(text string) string {
	const prefix = "dev:"
	return prefix + strings.TrimPrefix(text, prefix)
}

// unitReport says why a unit shows data or none. A unit of another team is like one that does not exist.
type unitReport struct {
	Unit     string
	Current  *roomsensor.UnitHistory  // where the unit is now; nil if it is in no device of the team
	Former   []roomsensor.UnitHistory // where it was, the newest first
	Silent   bool                     // it is in a device that has not reported recently
	Rejected *time.Time               // when its newest reject arrived; nil without one
}

// CanRegister reports whether registering the unit would help.
func (r *unitReport) CanRegister() bool { return r.Current == nil && len(r.Former) == 0 }

// reportUnit finds out what is known about a unit. groups are the newest groups of its rejects.
func (s *server) reportUnit(
	ctx context.Context, v *visit, unit string, groups []roomsensor.RejectGroup,
) (*unitReport, error) {
	history, err := s.backend.UnitHistory(ctx, v.team.ID, unit)
	if err != nil {
		return nil, err
	}
	report := &unitReport{Unit: unit}
	for i := range history {
		installation := roomsensor.Installation{From: history[i].From, To: history[i].To}
		if installation.Covers(v.now) {
			report.Current = &history[i]
			report.Silent = roomsensor.StatusAt(v.now, history[i].LastSeenAt) != roomsensor.Online
		} else {
			report.Former = append([]roomsensor.UnitHistory{history[i]}, report.Former...)
		}
	}
	if len(groups) > 0 {
		report.Rejected = &groups[0].Last
	}
	return report, nil
}

// unitForm is the form that registers a unit, as it was entered.
type unitForm struct {
	Unit, Name, Tags, At string
	Zone                 string
	Errors               formErrors
}

func (s *server) showUnitForm(_ context.Context, v *visit) error {
	filter := readRejectFilter(v)
	if filter.unit == nil {
		return v.redirect(v.path("rejects"), "")
	}
	return v.render("unit-new", unitForm{Unit: filter.Unit, Zone: v.zone().String()})
}

func (s *server) registerUnit(ctx context.Context, v *visit) error {
	if err := v.checkForm(); err != nil {
		return err
	}
	form := unitForm{
		Unit: v.form("unit"), Name: v.form("name"), Tags: v.form("tags"), At: v.form("at"),
		Zone: v.zone().String(), Errors: formErrors{},
	}
	device := form.read(v)
	if len(form.Errors) > 0 {
		return v.invalid("unit-new", form)
	}
	_, err := s.backend.RegisterUnit(ctx, device, v.now)
	if _, taken := errors.AsType[*roomsensor.HardwareConflictError](err); taken {
		form.Errors.add("unit", "This unit cannot be registered: it may have been registered before. "+
			"Check the id on the unit. If it is right, ask your operator.")
		return v.invalid("unit-new", form)
	}
	if err != nil {
		return err
	}
	return v.redirect(v.path("rejects")+"?unit="+form.Unit,
		"The unit "+form.Unit+" is registered. Replay its rejects below to store what arrived before.")
}

// read checks the form and returns the device to create.
func (f *unitForm) read(v *visit) roomsensor.NewDevice {
	d := roomsensor.NewDevice{TeamID: v.team.ID, HardwareID: f.Unit, Metadata: map[string]string{}}
	if !roomsensor.IsHardwareID(f.Unit) {
		f.Errors.add("unit", wrongUnit)
	}
	if f.Name != "" {
		f.Errors.addCheck("name", "The name", roomsensor.CheckName(f.Name))
		d.DisplayName = &f.Name
	}
	for line := range strings.Lines(f.Tags) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if !ok {
			f.Errors.add("tags", "Write one tag per line, as key=value, such as building=gym.")
		}
		d.Metadata[strings.TrimSpace(key)] = strings.TrimSpace(value)
	}
	f.Errors.addCheck("tags", "A tag is not valid:", roomsensor.CheckMetadata(d.Metadata))
	d.InstalledAt = v.localTime(f.At, f.Errors)
	return d
}
