package clientcmd

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"roomsensor/client"
	"roomsensor/internal/cli"
	"roomsensor/internal/config"
)

// Get has the commands that print what the API returns.
type Get struct {
	Devices     getDevicesCmd     `cmd:"" help:"List the devices of the key's team."`
	Current     getCurrentCmd     `cmd:"" help:"Show the newest reading of each device."`
	Readings    getReadingsCmd    `cmd:"" help:"List the readings of a device, newest first."`
	Changes     getChangesCmd     `cmd:"" help:"Print the readings that were inserted or changed, also late ones, and optionally wait for more."`
	Assignments getAssignmentsCmd `cmd:"" help:"List the assignments of all devices that overlap a period, newest first; without a period, those that are open."`

	Nights getNightsCmd `cmd:"" help:"List the nights of assignments with the verdict on the air, newest first, and in a night the worst first."`

	Coverage getCoverageCmd `cmd:"" help:"Show how many of the expected readings of each device arrived."`
	Gaps     getGapsCmd     `cmd:"" help:"List the times without readings of a device, newest first."`

	Aggregates getAggregatesCmd `cmd:"" help:"List minimum, maximum and mean of a device by hour or by day, newest first."`
}

// get calls a command with a client of the API.
func get(ctx context.Context, t *cli.Terminal, c config.Client, do func(api *client.Client) error) error {
	api, shut, err := connect(t, c)
	if err != nil {
		return err
	}
	defer shut()
	return explain(ctx, c, do(api))
}

type getDevicesCmd struct {
	config.Client
	tagged
	cli.ListFormat
}

// deviceRow is a device in a table.
type deviceRow struct {
	DeviceID    uuid.UUID         `json:"device_id"`
	DisplayName *string           `json:"display_name"`
	HardwareID  string            `json:"hardware_id"`
	Status      client.Status     `json:"status"`
	LastSeenAt  *time.Time        `json:"last_seen_at"`
	Assignment  string            `json:"assignment"`
	Metadata    map[string]string `json:"metadata"`
}

// Run lists the devices.
func (c *getDevicesCmd) Run(ctx context.Context, t *cli.Terminal) error {
	return get(ctx, t, c.Client, func(api *client.Client) error {
		devices := api.Devices(ctx, client.DeviceQuery{Metadata: c.Metadata})
		return cli.PrintList(t, c.ListFormat, devices, func(d client.Device) deviceRow {
			return deviceRow{
				d.DeviceID, d.DisplayName, d.HardwareID, d.Status, d.LastSeenAt, label(d.ActiveAssignment), d.Metadata,
			}
		})
	})
}

func label(a *client.ActiveAssignment) string {
	if a == nil {
		return ""
	}
	return a.Label
}

type getCurrentCmd struct {
	config.Client
	tagged
	cli.ListFormat
}

// currentRow is a device with its newest reading in a table.
type currentRow struct {
	DeviceID    uuid.UUID     `json:"device_id"`
	DisplayName *string       `json:"display_name"`
	Status      client.Status `json:"status"`
	BucketAt    *time.Time    `json:"bucket_at"`
	CO2PPM      *float64      `json:"co2_ppm"`
	TempC       *float64      `json:"temp_c"`
	HumidityPct *float64      `json:"humidity_pct"`
	Lux         *float64      `json:"lux"`
	SPLDB       *float64      `json:"spl_db"`
}

// Run lists the newest readings.
func (c *getCurrentCmd) Run(ctx context.Context, t *cli.Terminal) error {
	return get(ctx, t, c.Client, func(api *client.Client) error {
		current := api.CurrentDevices(ctx, client.DeviceQuery{Metadata: c.Metadata})
		return cli.PrintList(t, c.ListFormat, current, func(d client.CurrentDevice) currentRow {
			row := currentRow{DeviceID: d.DeviceID, DisplayName: d.DisplayName, Status: d.Status}
			if r := d.Latest; r != nil {
				row.BucketAt = &r.BucketAt
				row.CO2PPM, row.TempC, row.HumidityPct, row.Lux, row.SPLDB = r.CO2PPM, r.TempC, r.HumidityPct, r.Lux, r.SPLDB
			}
			return row
		})
	})
}

// ofClientDevice are the flags of a command for one device of the key's team.
type ofClientDevice struct {
	config.Client
	Device cli.Name `arg:"" help:"Id or name of the device, or the hardware id of the unit that is installed in it."`
}

type getReadingsCmd struct {
	ofClientDevice
	window
	cli.ListFormat
	Assignment *cli.ID `help:"Only readings of this assignment; without a period, all of them." implied:"any" placeholder:"ID"`
}

// Run lists the readings of a device.
func (c *getReadingsCmd) Run(ctx context.Context, t *cli.Terminal) error {
	query, err := c.query()
	if err != nil {
		return err
	}
	if c.Assignment != nil {
		query.Assignment = uuid.UUID(*c.Assignment)
	}
	return get(ctx, t, c.Client, func(api *client.Client) error {
		device, err := findDevice(ctx, api, string(c.Device))
		if err != nil {
			return err
		}
		readings := api.Readings(ctx, device, client.ReadingQuery{Window: query})
		return cli.PrintList(t, c.ListFormat, readings, func(r client.Reading) client.Reading { return r })
	})
}

type getAssignmentsCmd struct {
	config.Client
	window
	referenced
	tagged
	cli.ListFormat
	Label string `help:"Only assignments with this label." implied:"any" placeholder:"LABEL"`
	Type  string `default:"" enum:",place,athlete" help:"Only assignments of places or of athletes." implied:"both" placeholder:"TYPE"`
}

// referenced is the flag that selects assignments by their reference.
type referenced struct {
	ExternalRef string `help:"Only assignments with this external_ref, such as those of an athlete." implied:"any" placeholder:"REF"`
}

// assignmentRow is an assignment in a table.
type assignmentRow struct {
	Label       string                `json:"label"`
	ExternalRef *string               `json:"external_ref"`
	Type        client.AssignmentType `json:"type"`
	DisplayName *string               `json:"display_name"`
	StartedAt   time.Time             `json:"started_at"`
	EndedAt     *time.Time            `json:"ended_at"`
}

// Run lists assignments.
func (c *getAssignmentsCmd) Run(ctx context.Context, t *cli.Terminal) error {
	period, err := c.query()
	if err != nil {
		return err
	}
	query := client.AssignmentQuery{
		Window: period, Metadata: c.Metadata, ExternalRef: c.ExternalRef,
		Label: c.Label, Type: client.AssignmentType(c.Type),
	}
	return get(ctx, t, c.Client, func(api *client.Client) error {
		return cli.PrintList(t, c.ListFormat, api.TeamAssignments(ctx, query), func(a client.TeamAssignment) assignmentRow {
			return assignmentRow{a.Label, a.ExternalRef, a.Type, a.DisplayName, a.StartedAt, a.EndedAt}
		})
	})
}

type getNightsCmd struct {
	config.Client
	referenced
	tagged
	cli.ListFormat
	Night     *date `help:"Date on which the night begins, in the time zone of the team." implied:"the last night" placeholder:"DATE"`
	FromNight *date `help:"First of several nights, at most 92." implied:"that of --night" placeholder:"DATE"`
	ToNight   *date `help:"Last of several nights." implied:"the last night" placeholder:"DATE"`
}

// date is a date of the calendar.
type date time.Time

// UnmarshalText parses a date.
func (v *date) UnmarshalText(text []byte) error {
	parsed, err := time.Parse(time.DateOnly, string(text))
	if err != nil {
		return fmt.Errorf("%q is not a date, for example 2026-01-31", text)
	}
	*v = date(parsed)
	return nil
}

// nightRow is a night in a table.
type nightRow struct {
	Night       string         `json:"night"`
	Label       string         `json:"label"`
	DisplayName *string        `json:"display_name"`
	Verdict     client.Verdict `json:"verdict"`
	Coverage    *float64       `json:"coverage"`
	CO2Mean     *float64       `json:"co2_ppm_mean"`
	CO2Max      *float64       `json:"co2_ppm_max"`
	CO2Bad      int            `json:"co2_ppm_minutes_bad"`
	TempMean    *float64       `json:"temp_c_mean"`
}

// query returns the nights of a request.
func (c *getNightsCmd) query() (q client.NightQuery, err error) {
	q.ExternalRef, q.Metadata = c.ExternalRef, c.Metadata
	switch {
	case c.Night != nil && (c.FromNight != nil || c.ToNight != nil):
		return q, cli.Usagef("--night cannot be combined with --from-night and --to-night. Omit one of them.")
	case c.ToNight != nil && c.FromNight == nil:
		return q, cli.Usagef("--to-night needs --from-night. For one night, give --night.")
	case c.Night != nil:
		c.FromNight, c.ToNight = c.Night, c.Night
	}
	if c.FromNight != nil {
		q.From = time.Time(*c.FromNight)
	}
	if c.ToNight != nil {
		q.To = time.Time(*c.ToNight)
	}
	return q, nil
}

// Run lists nights.
func (c *getNightsCmd) Run(ctx context.Context, t *cli.Terminal) error {
	query, err := c.query()
	if err != nil {
		return err
	}
	return get(ctx, t, c.Client, func(api *client.Client) error {
		return cli.PrintList(t, c.ListFormat, api.Nights(ctx, query), func(n client.Night) nightRow {
			return nightRow{
				n.Night, n.Label, n.DisplayName, n.Verdict, n.Coverage,
				n.CO2PPM.Mean, n.CO2PPM.Max, n.CO2PPM.MinutesBad, n.TempC.Mean,
			}
		})
	})
}

type getCoverageCmd struct {
	config.Client
	window
	tagged
	cli.ListFormat
}

// coverageRow is the coverage of a device in a table.
type coverageRow struct {
	DeviceID    uuid.UUID     `json:"device_id"`
	DisplayName *string       `json:"display_name"`
	Status      client.Status `json:"status"`
	Expected    int           `json:"expected"`
	Present     int           `json:"present"`
	Coverage    *float64      `json:"coverage"`
	LongestGap  *client.Gap   `json:"longest_gap"`
}

// Run lists the coverage of each device.
func (c *getCoverageCmd) Run(ctx context.Context, t *cli.Terminal) error {
	query, err := c.query()
	if err != nil {
		return err
	}
	return get(ctx, t, c.Client, func(api *client.Client) error {
		devices := api.Coverage(ctx, client.CoverageQuery{Window: query, Metadata: c.Metadata})
		return cli.PrintList(t, c.ListFormat, devices, func(d client.DeviceCoverage) coverageRow {
			return coverageRow{d.DeviceID, d.DisplayName, d.Status, d.Expected, d.Present, d.Coverage, d.LongestGap}
		})
	})
}

type getGapsCmd struct {
	ofClientDevice
	window
	cli.ListFormat
	Min *cli.Period `help:"Leave out gaps shorter than this, such as 30m or 1h." implied:"5m" placeholder:"DURATION"`
}

// Run lists the gaps of a device.
func (c *getGapsCmd) Run(ctx context.Context, t *cli.Terminal) error {
	query, err := c.query()
	if err != nil {
		return err
	}
	return get(ctx, t, c.Client, func(api *client.Client) error {
		device, err := findDevice(ctx, api, string(c.Device))
		if err != nil {
			return err
		}
		gaps := api.Gaps(ctx, device, client.GapQuery{Window: query, Min: cli.OrZero(c.Min)})
		return cli.PrintList(t, c.ListFormat, gaps, func(g client.Gap) client.Gap { return g })
	})
}

type getAggregatesCmd struct {
	ofClientDevice
	window
	cli.ListFormat
	Interval string   `default:"1h" enum:"1h,1d" help:"Length of a row: 1h or 1d." placeholder:"INTERVAL"`
	TimeZone string   `default:"UTC" help:"IANA name of the time zone of days, such as Europe/Berlin." placeholder:"ZONE"`
	Metrics  []string `help:"Only these metrics, separated by commas." placeholder:"METRIC"`
}

// aggregateRow is an aggregate in a table.
type aggregateRow struct {
	BucketAt    time.Time `json:"bucket_at"`
	Expected    int       `json:"expected"`
	Present     int       `json:"present"`
	CO2PPM      *extent   `json:"co2_ppm"`
	TempC       *extent   `json:"temp_c"`
	HumidityPct *extent   `json:"humidity_pct"`
	Lux         *extent   `json:"lux"`
	SPLDB       *extent   `json:"spl_db"`
}

// extent is what a table shows of a metric.
type extent struct {
	Min  *float64 `json:"min"`
	Max  *float64 `json:"max"`
	Mean *float64 `json:"mean"`
}

func extentOf(s *client.Stat) *extent {
	if s == nil {
		return nil
	}
	return &extent{s.Min, s.Max, s.Mean}
}

// Run lists the aggregates of a device.
func (c *getAggregatesCmd) Run(ctx context.Context, t *cli.Terminal) error {
	query := client.AggregateQuery{Interval: client.Interval(c.Interval), TimeZone: c.TimeZone}
	var err error
	if query.Window, err = c.query(); err != nil {
		return err
	}
	if query.Metrics, err = metricNames(c.Metrics); err != nil {
		return err
	}
	return get(ctx, t, c.Client, func(api *client.Client) error {
		device, err := findDevice(ctx, api, string(c.Device))
		if err != nil {
			return err
		}
		return cli.PrintList(t, c.ListFormat, api.Aggregates(ctx, device, query), func(a client.Aggregate) aggregateRow {
			return aggregateRow{
				a.BucketAt, a.Expected, a.Present,
				extentOf(a.CO2PPM), extentOf(a.TempC), extentOf(a.HumidityPct), extentOf(a.Lux), extentOf(a.SPLDB),
			}
		})
	})
}
