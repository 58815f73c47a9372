package dashboard

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/roomsensor"
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
}

// deviceForm has the fields of the forms of the page, as entered.
type deviceForm struct {
	Name       string
	Key, Value string // of a tag
	HardwareID string
	At         string // local time of a change of the hardware; empty is now
}

// newDeviceForm returns the form of a device before anything was entered.
func newDeviceForm(view *deviceView) (f deviceForm) {
	if view.Device.DisplayName != nil {
		f.Name = *view.Device.DisplayName
	}
	return f
}

// deviceChange is a posted form of the page of a device.
type deviceChange struct {
	form   deviceForm
	errors formErrors
}

// changeDevice reads a form, applies it, and returns to the page of the device. do returns the message that the person
// sees there. If the form has an error, the page shows it as entered.
func (s *server) changeDevice(
	ctx context.Context, v *visit, do func(deviceID uuid.UUID, c *deviceChange) (message string, err error),
) error {
	id, err := v.id("device_id")
	if err != nil {
		return err
	}
	if err := v.checkForm(); err != nil {
		return err
	}
	c := deviceChange{errors: formErrors{}, form: deviceForm{
		Name: v.form("name"), Key: v.form("key"), Value: v.form("value"), HardwareID: v.form("hardware_id"), At: v.form("at"),
	}}
	message, err := do(id, &c)
	switch {
	case err != nil:
		return err
	case len(c.errors) == 0:
		return v.redirect(v.path("devices", id.String()), message)
	}
	view, err := s.deviceView(ctx, v)
	if err != nil {
		return err
	}
	view.Errors, view.Form = c.errors, c.form
	if c.form.Name == "" {
		view.Form.Name = newDeviceForm(view).Name
	}
	return v.invalid("device", view)
}

// renameDevice changes the display name. An empty name clears it.
func (s *server) renameDevice(ctx context.Context, v *visit) error {
	return s.changeDevice(ctx, v, func(id uuid.UUID, c *deviceChange) (string, error) {
		patch := roomsensor.DevicePatch{SetDisplayName: true}
		if name := c.form.Name; name != "" {
			c.errors.addCheck("name", "The name", roomsensor.CheckName(name))
			patch.DisplayName = &name
		}
		if len(c.errors) > 0 {
			return "", nil
		}
		_, err := s.backend.UpdateDevice(ctx, v.team.ID, id, patch)
		return "The name was changed.", err
	})
}

// tagDevice sets a tag, or removes it if the form has remove.
func (s *server) tagDevice(ctx context.Context, v *visit) error {
	return s.changeDevice(ctx, v, func(id uuid.UUID, c *deviceChange) (string, error) {
		key, value := c.form.Key, &c.form.Value
		c.errors.addCheck("key", "A tag", roomsensor.CheckMetadataKey(key))
		c.errors.addCheck("value", "The value", roomsensor.CheckMetadataValue(*value))
		if len(c.errors) > 0 {
			return "", nil
		}
		message := "The tag " + key + " was saved."
		if v.form("remove") != "" {
			value, message = nil, "The tag "+key+" was removed."
		}
		patch := roomsensor.MetadataPatch{Values: map[string]*string{key: value}}
		_, err := s.backend.UpdateDevice(ctx, v.team.ID, id, roomsensor.DevicePatch{Metadata: patch})
		if invalid, ok := errors.AsType[*roomsensor.Error](err); ok && invalid.Code == roomsensor.CodeValidationFailed {
			c.errors.add("key", fmt.Sprintf("The device has %d tags, which is the most. Remove one first.",
				roomsensor.MaxMetadataKeys))
			return "", nil
		}
		return message, err
	})
}

// changeHardware installs another unit in a device, or removes its unit if the form has remove.
func (s *server) changeHardware(ctx context.Context, v *visit) error {
	return s.changeDevice(ctx, v, func(id uuid.UUID, c *deviceChange) (message string, err error) {
		remove, unit := v.form("remove") != "", c.form.HardwareID
		if !remove && !roomsensor.IsHardwareID(unit) {
			c.errors.add("hardware_id", wrongUnit)
		}
		at := v.effectiveTime(c.form.At, c.errors)
		if len(c.errors) > 0 {
			return "", nil
		}
		if remove {
			_, err = s.backend.RemoveHardware(ctx, v.team.ID, id, at)
			message = "The unit was removed."
		} else {
			_, err = s.backend.ReplaceHardware(ctx, v.team.ID, id, unit, at)
			message = "Unit " + unit + " was installed."
		}
		if conflict, ok := errors.AsType[*roomsensor.HardwareConflictError](err); ok {
			return "", s.explainHardware(ctx, v, conflict, c.errors)
		}
		return message, err
	})
}

// explainHardware adds the sentence for a conflict. It names another device only if that belongs to the team.
func (s *server) explainHardware(
	ctx context.Context, v *visit, c *roomsensor.HardwareConflictError, errs formErrors,
) error {
	other, remedy := "a device of another team", "Check the hardware id, or ask your operator."
	device, err := s.backend.Device(ctx, v.team.ID, c.DeviceID)
	switch {
	case err == nil:
		other, remedy = "the device "+nameOf(device.DisplayName, device.HardwareID), "Remove it there first."
	case !errors.Is(err, roomsensor.ErrNotFound):
		return err
	}
	when := func(at time.Time) string { return at.In(v.zone()).Format("Mon 2 Jan 2006, 15:04:05") }
	switch c.Conflict {
	case roomsensor.HardwareInstalled:
		if c.To != nil {
			errs.add("at", "Unit "+c.HardwareID+" was installed in "+other+" until "+when(*c.To)+
				". Enter that time or a later one.")
		} else {
			errs.add("hardware_id", "Unit "+c.HardwareID+" is installed in "+other+". "+remedy)
		}
	case roomsensor.HardwareJustInstalled:
		errs.add("hardware_id", "Unit "+c.HardwareID+" was just installed in another device. Check the hardware id.")
	case roomsensor.HardwareAlreadyThere:
		errs.add("hardware_id", "Unit "+c.HardwareID+" is already installed in this device. Enter the id of the new unit.")
	case roomsensor.HardwareReplacedLater:
		errs.add("at", "This device had another unit at that time or later. Enter a later time.")
	case roomsensor.HardwareInstalledLater:
		errs.add("at", "Unit "+c.HardwareID+" was installed at "+when(*c.From)+". Enter a later time.")
	case roomsensor.HardwareNotInstalled:
		errs.add("hardware_id", "No unit is installed in this device. Install one.")
	}
	return nil
}
