package app

import (
	"context"
	"fmt"
	"time"

	"roomsensor/internal/roomsensor"
)

// presentDevices lists the cast as it is now: an earlier run may have named a
// device, or uploaded as one that did not report.
func (d *demo) presentDevices(ctx context.Context) error {
	d.say("\nThe devices of %s:", demoTeam)
	for i, id := range d.state.Devices {
		device, err := d.operator.store.Device(ctx, d.state.TeamID, id)
		if err != nil {
			return fmt.Errorf("looking up a device of the demo: %w", err)
		}
		d.say("  %s  %-18s %s", id, title(&device), demoCast[i].remark(&device, time.Now()))
	}
	return nil
}

func title(device *roomsensor.Device) string {
	if device.DisplayName == nil {
		return "(unnamed)"
	}
	return *device.DisplayName
}

// remark says what is special about a device.
func (c *demoDevice) remark(device *roomsensor.Device, now time.Time) string {
	status := roomsensor.StatusAt(now, device.LastSeenAt)
	switch {
	case device.LastSeenAt == nil:
		return string(status) + ": never reported"
	case status != roomsensor.Online:
		return fmt.Sprintf("%s: last seen %s ago", status, days(now.Sub(*device.LastSeenAt)))
	case c.swapped > 0:
		return fmt.Sprintf("its unit was replaced %s before the demo began", days(c.swapped))
	case len(c.blocks) > 0 && c.blocks[len(c.blocks)-1].ended > 0:
		return "available; its assignments are closed"
	case len(c.blocks) > 1:
		return "assigned to its second athlete"
	}
	return ""
}

// days is a length of time in words: whole days from two on, else hours.
func days(length time.Duration) string {
	if length < 2*demoDay {
		return fmt.Sprintf("%.0f hours", length.Hours())
	}
	return fmt.Sprintf("%.0f days", length.Hours()/24)
}
