package assignments

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"roomsensor/internal/dashboard/page"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/wording"
)

const (
	// maxManyDevices and maxManyTagBytes bound the devices that a table can name.
	maxManyDevices  = 5000
	maxManyTagBytes = 16 << 20
	// maxManyShown is how many problems, and how many sentences about nights, the page lists.
	maxManyShown = 50
)

// manyForm is the data of web/pages/many.html: a table, its problems, and the preview of what it will change.
type manyForm struct {
	Table, Zone string
	Rest        int // devices of the team that the table of all devices has no room for
	Problems    []manyProblem
	Hidden      int // problems that are not listed
	Unchanged   bool
	Changed     bool // somebody changed a device after the preview that the person confirmed
	Changes     []manyChange
	Devices     int // that change
	Preview     *preview
}

// manyChange is what a line of the table changes.
type manyChange struct {
	difference

	Line   int
	Device string
}

// ShowMany shows the form that changes many devices, with the devices as they are.
func (p *Pages) ShowMany(ctx context.Context, v *page.Visit) error {
	devices, err := p.devices(ctx, v)
	if err != nil {
		return err
	}
	var table bytes.Buffer
	fits := min(len(devices), maxManyLines)
	for {
		table.Reset()
		if err := writeMany(&table, devices[:fits], ','); err != nil {
			return err
		}
		if table.Len() <= maxManyBytes {
			break
		}
		fits /= 2 // Tags can be long.
	}
	return v.Render("many", manyForm{Table: table.String(), Zone: v.Zone().String(), Rest: len(devices) - fits})
}

// DownloadMany sends the same table of all devices for a spreadsheet.
func (p *Pages) DownloadMany(ctx context.Context, v *page.Visit) error {
	devices, err := p.devices(ctx, v)
	if err != nil {
		return err
	}
	table, separator := bytes.NewBufferString(byteOrderMark), ','
	if v.DecimalComma() {
		separator = ';'
	}
	if err := writeMany(table, devices, separator); err != nil {
		return err
	}
	return v.SendFile("devices.csv", "text/csv; charset=utf-8", table.Bytes())
}

// devices lists the devices of the team by name.
func (p *Pages) devices(ctx context.Context, v *page.Visit) (all []roomsensor.Device, err error) {
	q := roomsensor.DeviceQuery{Limit: maxManyDevices, MaxTagBytes: maxManyTagBytes}
	err = p.backend.EachDevice(ctx, v.Team.ID, q, func(d *roomsensor.Device) { all = append(all, *d) })
	wording.SortNames(all, nameOf)
	return all, err
}

func nameOf(d *roomsensor.Device) string { return wording.TextOr(d.DisplayName, d.HardwareID) }

// SaveMany shows what a table changes, and saves it if the person has seen exactly that. If something changed between
// the plan and its transaction, it plans again, once.
func (p *Pages) SaveMany(ctx context.Context, v *page.Visit) error {
	f := &manyForm{Table: v.Secret("table"), Zone: v.Zone().String()}
	for last := false; ; last = true {
		made, err := p.planMany(ctx, v, f.Table)
		if err != nil {
			return err
		}
		err = p.carryOutMany(ctx, v, f, made)
		conflict, refused := errors.AsType[*roomsensor.AssignmentConflictError](err)
		changed := refused || errors.Is(err, roomsensor.ErrDeviceChanged) || errors.Is(err, roomsensor.ErrNotFound)
		switch {
		case errors.Is(err, errUnconfirmed):
			return v.Render("many", f)
		case changed && !last:
			continue
		case refused:
			err = made.refuseConflict(ctx, conflict)
		}
		if err != nil {
			return err
		}
		if n := len(made.problems); n > 0 {
			f.Problems, f.Hidden = made.problems[:min(n, maxManyShown)], max(0, n-maxManyShown)
			return v.Invalid("many", f)
		}
		if f.Unchanged = len(made.changes) == 0; f.Unchanged {
			return v.Render("many", f)
		}
		return v.Redirect(v.Path(), "Changed "+wording.Plural(f.Devices, "device")+".")
	}
}

// carryOutMany saves a plan that has no problem. Its error is errUnconfirmed, with the preview in f, if the person has
// not seen it.
func (p *Pages) carryOutMany(ctx context.Context, v *page.Visit, f *manyForm, made *manyPlan) error {
	if len(made.problems) > 0 || len(made.changes) == 0 {
		return nil
	}
	f.Changes, f.Devices = made.changes, made.devices
	token, sent := f.token(), v.Form("confirm")
	_, err := p.backend.ChangeAssignments(ctx, v.Team.ID, made.change, func(outcome roomsensor.AssignmentOutcome) error {
		if sent == token {
			return nil
		}
		f.Preview = newPreview(v, &form{Action: Start}, &plan{}, outcome)
		f.Preview.Token = token
		if n := len(f.Preview.Lines); n > maxManyShown {
			more := fmt.Sprintf("%d other sentences about nights are not shown.", n-maxManyShown)
			f.Preview.Lines = append(f.Preview.Lines[:maxManyShown], more)
		}
		table, _, _ := strings.Cut(token, ".")
		f.Changed = strings.HasPrefix(sent, table+".")
		return errUnconfirmed
	})
	return err
}

// token returns what the form sends again if the person saw these changes of this table.
func (f *manyForm) token() string {
	table := sha256.Sum256([]byte(lineEnds.Replace(f.Table)))
	changes := sha256.Sum256(fmt.Appendf(nil, "%#v", f.Changes))
	return hex.EncodeToString(table[:8]) + "." + hex.EncodeToString(changes[:8])
}

// refuseConflict adds the problem of the line that a stored assignment contradicts.
func (m *manyPlan) refuseConflict(ctx context.Context, c *roomsensor.AssignmentConflictError) error {
	f := &form{Action: Start, Errors: page.FormErrors{}}
	if err := m.pages.explain(ctx, m.v, f, c); err != nil {
		return err
	}
	m.refuse(m.lines[c.Assignment.DeviceID], f.Conflict+f.Errors["at"])
	return nil
}
