package devices

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/dashboard/page"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/wording"
)

// DeviceChanges changes a device of a team.
type DeviceChanges interface {
	UpdateDevice(
		ctx context.Context, teamID, deviceID uuid.UUID, patch roomsensor.DevicePatch,
	) (roomsensor.Device, error)
	// ReplaceHardware and RemoveHardware return a *roomsensor.HardwareConflictError if the installations contradict the
	// change.
	ReplaceHardware(
		ctx context.Context, teamID, deviceID uuid.UUID, hardwareID string, at time.Time,
	) (roomsensor.Device, error)
	RemoveHardware(ctx context.Context, teamID, deviceID uuid.UUID, at time.Time) (roomsensor.Device, error)
	// RetireDevice also returns an error for an assignment that began at that time or later.
	RetireDevice(ctx context.Context, teamID, deviceID uuid.UUID, at time.Time) (roomsensor.Device, error)
	RetiredDevices(ctx context.Context, teamID uuid.UUID) ([]roomsensor.Device, error)
}

// deviceForm has the fields of the forms of the page, as entered.
type deviceForm struct {
	Name       string
	Key, Value string // of a tag
	HardwareID string
	At         string // local time of a change of the hardware; empty is now
}

// deviceChange is a posted form of the page of a device.
type deviceChange struct {
	form   deviceForm
	errors page.FormErrors
}

// changeDevice reads a form, applies it, and returns to the page of the device. do returns the message that the person
// sees there. If the form has an error, the page shows it as entered.
func (p *Pages) changeDevice(
	ctx context.Context, v *page.Visit, do func(deviceID uuid.UUID, c *deviceChange) (message string, err error),
) error {
	id, err := v.ID("device_id")
	if err != nil {
		return err
	}
	c := deviceChange{errors: page.FormErrors{}, form: deviceForm{
		Name: v.Form("name"), Key: v.Form("key"), Value: v.Form("value"), HardwareID: v.Form("hardware_id"), At: v.Form("at"),
	}}
	message, err := do(id, &c)
	switch {
	case err != nil:
		return err
	case len(c.errors) == 0:
		return v.Redirect(v.Path("devices", id.String()), message)
	}
	view, err := p.deviceView(ctx, v)
	if err != nil {
		return err
	}
	view.Errors, view.Form = c.errors, c.form
	if c.form.Name == "" {
		view.Form.Name = wording.TextOr(view.Device.DisplayName, "")
	}
	return v.Invalid("device", view)
}

// RenameDevice changes the display name. An empty name clears it.
func (p *Pages) RenameDevice(ctx context.Context, v *page.Visit) error {
	return p.changeDevice(ctx, v, func(id uuid.UUID, c *deviceChange) (string, error) {
		patch := roomsensor.DevicePatch{SetDisplayName: true}
		if name := c.form.Name; name != "" {
			c.errors.AddCheck("name", "The name", roomsensor.CheckName(name))
			patch.DisplayName = &name
		}
		if len(c.errors) > 0 {
			return "", nil
		}
		_, err := p.backend.UpdateDevice(ctx, v.Team.ID, id, patch)
		return "The name was changed.", err
	})
}

// TagDevice sets a tag, or removes it if the form has remove.
func (p *Pages) TagDevice(ctx context.Context, v *page.Visit) error {
	return p.changeDevice(ctx, v, func(id uuid.UUID, c *deviceChange) (string, error) {
		key, value := c.form.Key, &c.form.Value
		c.errors.AddCheck("key", "A tag", roomsensor.CheckMetadataKey(key))
		c.errors.AddCheck("value", "The value", roomsensor.CheckMetadataValue(*value))
		if len(c.errors) > 0 {
			return "", nil
		}
		if v.Form("new") != "" {
			if err := p.refuseKnownTag(ctx, v, id, c); err != nil || len(c.errors) > 0 {
				return "", err
			}
		}
		message := "The tag " + key + " was saved."
		if v.Form("remove") != "" {
			value, message = nil, "The tag "+key+" was removed."
		}
		patch := roomsensor.MetadataPatch{Values: map[string]*string{key: value}}
		_, err := p.backend.UpdateDevice(ctx, v.Team.ID, id, roomsensor.DevicePatch{Metadata: patch})
		if invalid, ok := errors.AsType[*roomsensor.Error](err); ok && invalid.Code == roomsensor.CodeValidationFailed {
			c.errors.Add("key", fmt.Sprintf("The device has %d tags, which is the most. Remove one first.",
				roomsensor.MaxMetadataKeys))
			return "", nil
		}
		return message, err
	})
}

// refuseKnownTag adds an error if the device has the tag of the form for a new tag, also in other letter case.
func (p *Pages) refuseKnownTag(ctx context.Context, v *page.Visit, id uuid.UUID, c *deviceChange) error {
	device, err := p.backend.Device(ctx, v.Team.ID, id)
	if err != nil {
		return err
	}
	for key, value := range device.Metadata {
		if strings.EqualFold(key, c.form.Key) {
			c.errors.Add("key", "The device has the tag "+key+" already: "+value+". Change it there.")
		}
	}
	return nil
}

// ChangeHardware installs another unit in a device, or removes its unit if the form has remove.
func (p *Pages) ChangeHardware(ctx context.Context, v *page.Visit) error {
	return p.changeDevice(ctx, v, func(id uuid.UUID, c *deviceChange) (message string, err error) {
		remove, unit := v.Form("remove") != "", c.form.HardwareID
		if !remove && !wording.IsUnit(unit) {
			c.errors.Add("hardware_id", wording.WrongUnit)
		}
		at := v.EffectiveTime(c.form.At, c.errors)
		if len(c.errors) > 0 {
			return "", nil
		}
		if remove {
			_, err = p.backend.RemoveHardware(ctx, v.Team.ID, id, at)
			message = "The unit was removed."
		} else {
			_, err = p.backend.ReplaceHardware(ctx, v.Team.ID, id, unit, at)
			message = "Unit " + unit + " was installed."
		}
		if conflict, ok := errors.AsType[*roomsensor.HardwareConflictError](err); ok {
			return "", p.explainHardware(ctx, v, conflict, c.errors)
		}
		return message, err
	})
}

// RetireDevice takes a device out of use.
func (p *Pages) RetireDevice(ctx context.Context, v *page.Visit) error {
	return p.changeDevice(ctx, v, func(id uuid.UUID, c *deviceChange) (string, error) {
		_, err := p.backend.RetireDevice(ctx, v.Team.ID, id, v.Now)
		_, ofUnit := errors.AsType[*roomsensor.HardwareConflictError](err)
		_, ofAssignment := errors.AsType[*roomsensor.AssignmentConflictError](err)
		if ofUnit || ofAssignment {
			c.errors.Add("retire", "The unit or the assignment of this device began just now. Try again in a minute.")
			return "", nil
		}
		return "The device is retired.", err
	})
}

// ListRetired shows the retired devices of a team.
func (p *Pages) ListRetired(ctx context.Context, v *page.Visit) error {
	retired, err := p.backend.RetiredDevices(ctx, v.Team.ID)
	if err != nil {
		return err
	}
	slices.SortStableFunc(retired, func(a, b roomsensor.Device) int { return b.RetiredAt.Compare(*a.RetiredAt) })
	return v.Render("retired", retired)
}

// explainHardware adds the sentence for a conflict. It names another device, and times, only if that belongs to the
// team.
func (p *Pages) explainHardware(
	ctx context.Context, v *page.Visit, c *roomsensor.HardwareConflictError, errs page.FormErrors,
) error {
	device, err := p.backend.Device(ctx, v.Team.ID, c.DeviceID)
	if errors.Is(err, roomsensor.ErrNotFound) {
		errs.Add("hardware_id", "Unit "+c.HardwareID+
			" cannot be installed here. Check the hardware id, or ask your operator.")
		return nil
	}
	if err != nil {
		return err
	}
	other := "the device " + wording.TextOr(device.DisplayName, device.HardwareID)
	when := func(at time.Time) string { return v.Time(at, "Mon 2 Jan 2006, 15:04:05") }
	switch c.Conflict {
	case roomsensor.HardwareInstalled:
		if c.To != nil {
			errs.Add("at", "Unit "+c.HardwareID+" was installed in "+other+" until "+when(*c.To)+
				". Enter that time or a later one.")
		} else {
			errs.Add("hardware_id", "Unit "+c.HardwareID+" is installed in "+other+". Remove it there first.")
		}
	case roomsensor.HardwareJustInstalled:
		errs.Add("hardware_id", "Unit "+c.HardwareID+" was just installed in another device. Check the hardware id.")
	case roomsensor.HardwareAlreadyThere:
		errs.Add("hardware_id", "Unit "+c.HardwareID+" is already installed in this device. Enter the id of the new unit.")
	case roomsensor.HardwareReplacedLater:
		errs.Add("at", "This device had another unit at that time or later. Enter a later time.")
	case roomsensor.HardwareInstalledLater:
		errs.Add("at", "Unit "+c.HardwareID+" was installed at "+when(*c.From)+". Enter a later time.")
	case roomsensor.HardwareNotInstalled:
		errs.Add("hardware_id", "No unit is installed in this device. Install one.")
	}
	return nil
}
