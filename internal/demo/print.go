package demo

import (
	"context"
	"fmt"
	"strings"
	"time"

	"roomsensor/internal/roomsensor"
)

// printOverview prints addresses, keys, links to sign in, devices and commands to try.
func (d *demo) printOverview(ctx context.Context) error {
	base := d.api.Public(d.api.APIAddr) + "/v1"
	d.printf("\nReady after %s.\n", time.Since(d.began).Round(100*time.Millisecond))
	for _, line := range [][2]string{ // /metrics is on the same listener as /readyz.
		{"Dashboard", d.dashboardURL()},
		{"Base URL", base},
		{"Docs", d.api.Docs(d.api.APIAddr)},
		{"Uploads", d.uploadURL()},
		{"Health of the API", "http://" + d.api.OpsAddr + "/readyz"},
		{"Health of ingest", "http://" + d.ingest.OpsAddr + "/readyz"},
		{"Health of dashboard", "http://" + d.dashboard.OpsAddr + "/readyz"},
		{"Health of notify", "http://" + d.notify.OpsAddr + "/readyz"},
		{"Read key", d.state.ReadKey},
		{"Read-write key", d.state.ReadWriteKey},
		{"Ingest key", d.state.IngestKey},
		{"NATS_URL", string(d.ingest.NATSURL)},
		{"DATABASE_URL", string(d.database.DatabaseURL)},
		{"Data and log", d.dir.path},
	} {
		d.printf("  %-19s %s", line[0], line[1])
	}
	if err := d.printSignIn(ctx); err != nil {
		return err
	}
	if err := d.printDevices(ctx); err != nil {
		return err
	}
	d.printf("\nTry:\n")
	for _, e := range d.examples(base) {
		d.printf("# %s\n%s\n", e[0], e[1])
	}
	d.printf("New readings arrive every few seconds. Ctrl-C stops the demo; run it again to continue.")
	return nil
}

func (d *demo) uploadURL() string { return "http://" + d.ingest.IngestAddr + "/uploads" }

// examples returns shell commands that work when they are pasted, each after its purpose.
func (d *demo) examples(base string) [][2]string {
	read := "curl -sS -H 'Authorization: Bearer " + d.state.ReadKey + "' "
	write := "curl -sS -H 'Authorization: Bearer " + d.state.ReadWriteKey + "' "
	device := func(name string) string { return base + "/devices/" + d.deviceID(name) }
	return [][2]string{
		{"The team and the key", read + base + "/team"},
		{"All devices with their newest reading and their last 24 hours", read + base + "/devices/current"},
		{"The last hour of one device", read + "'" + device("Weight room") + "/readings?last=1h'"},
		{"The athletes that a device tracked", read + device("Dorm 12") + "/assignments"},
		{"A week of two devices as CSV", fmt.Sprintf("%s'%s/readings.csv?last=7d&devices=%s,%s'",
			read, base, d.deviceID("Weight room"), d.deviceID("Film room"))},
		{"Name a device; a retry with the same key changes nothing", write +
			"-X PATCH -H 'Content-Type: application/json' -H 'Idempotency-Key: demo-1' " +
			`-d '{"display_name":"Corridor","metadata":{"floor":"1"}}' ` + device("")},
		{"Upload as the device that never reported", fmt.Sprintf("curl -sS -H 'Authorization: Bearer %s' -d "+
			`'{"hardware_id":"%s","readings":[{"measured_at":"'$(date -u +%%Y-%%m-%%dT%%H:%%M:%%SZ)'",`+
			`"co2_ppm":640,"temp_c":21.4}]}' %s`,
			d.state.IngestKey, d.state.fleet().HardwareID(deviceIndex("Spare")), d.uploadURL())},
	}
}

// deviceID returns the id of the device with a name in demoDevices.
func (d *demo) deviceID(name string) string { return d.state.Devices[deviceIndex(name)].String() }

// deviceIndex returns the index of the device with a name in demoDevices.
func deviceIndex(name string) int {
	for i := range demoDevices {
		if strings.EqualFold(demoDevices[i].name, name) {
			return i
		}
	}
	panic("the demo has no device named " + name) // A test calls every example.
}

// printDevices lists the devices with their stored names: an earlier run may have renamed a device, or uploaded as one
// that never reported.
func (d *demo) printDevices(ctx context.Context) error {
	d.printf("\nThe devices of %s:", demoTeam)
	for i, id := range d.state.Devices {
		device, err := d.store.Device(ctx, d.state.TeamID, id)
		if err != nil {
			return fmt.Errorf("reading a device of the demo: %w", err)
		}
		name, note := "(unnamed)", demoDevices[i].note
		if device.DisplayName != nil {
			name = *device.DisplayName
		}
		switch status := roomsensor.StatusAt(time.Now(), device.LastSeenAt); {
		case device.LastSeenAt == nil:
			note = string(status) + ": never reported"
		case status != roomsensor.Online:
			note = fmt.Sprintf("%s: last seen %s ago", status, formatAge(time.Since(*device.LastSeenAt)))
		}
		d.printf("  %s  %-18s %s", id, name, note)
	}
	return nil
}

// formatAge formats an age in whole days from two days on, and in hours below that.
func formatAge(age time.Duration) string {
	if age < 2*day {
		return fmt.Sprintf("%.0f hours", age.Hours())
	}
	return fmt.Sprintf("%.0f days", age.Hours()/24)
}
