package app

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// present says where everything is and what to try.
func (d *demo) present(ctx context.Context, _ *lifecycle) error {
	base := d.api.Public(d.api.APIAddr) + "/v1"
	d.say("\nReady after %s.\n", time.Since(d.began).Round(100*time.Millisecond))
	for _, line := range [][2]string{ // /metrics is beside /readyz.
		{"Base URL", base},
		{"Docs", d.api.Docs(d.api.APIAddr)},
		{"Uploads", d.uploadURL()},
		{"Health of the API", "http://" + d.api.OpsAddr + "/readyz"},
		{"Health of ingest", "http://" + d.ingest.OpsAddr + "/readyz"},
		{"Read key", d.state.ReadKey},
		{"Read-write key", d.state.ReadWriteKey},
		{"Ingest key", d.state.IngestKey},
		{"NATS_URL", d.nats},
		{"DATABASE_URL", d.database.DatabaseURL},
		{"Data and log", d.dir.path},
	} {
		d.say("  %-19s %s", line[0], line[1])
	}
	if err := d.presentDevices(ctx); err != nil {
		return err
	}
	d.say("\nTry:\n")
	for _, e := range d.examples(base) {
		d.say("# %s\n%s\n", e.what, e.command)
	}
	d.say("New readings come in every few seconds. Ctrl-C stops the demo; it goes on where it stopped when run again.")
	return nil
}

func (d *demo) uploadURL() string { return "http://" + d.ingest.IngestAddr + "/uploads" }

// example is a command that works when it is pasted.
type example struct{ what, command string }

func (d *demo) examples(base string) []example {
	read := "curl -sS -H 'Authorization: Bearer " + d.state.ReadKey + "' "
	write := "curl -sS -H 'Authorization: Bearer " + d.state.ReadWriteKey + "' "
	device := func(named string) string { return base + "/devices/" + d.named(named) }
	return []example{
		{"The team and the key", read + base + "/team"},
		{"Every device with its newest reading and its last 24 hours", read + base + "/devices/current"},
		{"The last hour of one device", read + "'" + device("Weight room") + "/readings?last=1h'"},
		{"The athletes that a device tracked", read + device("Dorm 12") + "/assignments"},
		{"A week of two devices as CSV", fmt.Sprintf("%s'%s/readings.csv?last=7d&devices=%s,%s'",
			read, base, d.named("Weight room"), d.named("Film room"))},
		{"Name a device; sent again, it is not done again", write +
			"-X PATCH -H 'Content-Type: application/json' -H 'Idempotency-Key: demo-1' " +
			`-d '{"display_name":"Corridor","metadata":{"floor":"1"}}' ` + device("")},
		{"Upload as the device that never reported", fmt.Sprintf("curl -sS -H 'Authorization: Bearer %s' -d "+
			`'{"hardware_id":"%s","readings":[{"measured_at":"'$(date -u +%%Y-%%m-%%dT%%H:%%M:%%SZ)'",`+
			`"co2_ppm":640,"temp_c":21.4}]}' %s`,
			d.state.IngestKey, d.state.fleet().HardwareID(d.indexOf("Spare")), d.uploadURL())},
	}
}

// named is the id of a device by its name.
func (d *demo) named(name string) string { return d.state.Devices[d.indexOf(name)].String() }

func (d *demo) indexOf(name string) int {
	for i := range demoCast {
		if strings.EqualFold(demoCast[i].name, name) {
			return i
		}
	}
	panic("the demo has no device named " + name) // A test calls every example.
}
