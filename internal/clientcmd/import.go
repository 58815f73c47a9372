package clientcmd

import (
	"context"
	"os"
	"time"

	"roomsensor/client"
	"roomsensor/internal/cli"
	"roomsensor/internal/config"
	"roomsensor/internal/csvimport"
	"roomsensor/internal/mapping"
	"roomsensor/internal/process"
	"roomsensor/internal/roomsensor"
)

// Import is the command that sends the readings of CSV files to the receiver.
type Import struct {
	config.Sender
	Files      []string        `arg:"" help:"CSV files, also compressed with gzip; - is standard input."`
	Device     *cli.HardwareID `help:"Hardware id of the unit to which all lines belong." implied:"each line has its unit" placeholder:"dev:N"`
	Unit       string          `help:"Column with the unit of a line: a hardware id, or a name that --units has." implied:"that of an export" placeholder:"COLUMN"`
	Units      string          `help:"CSV file with the columns device_id or display_name, and hardware_id, such as 'roomsensor get devices --output csv' prints." implied:"the lines have hardware ids" placeholder:"FILE"`
	Time       string          `help:"Column with the time of a line." implied:"the files are exports of readings, in the long shape" placeholder:"COLUMN"`
	TimeFormat string          `default:"rfc3339" enum:"rfc3339,unix,unix_ms,unix_us,unix_ns,local" help:"Format of the times: rfc3339, such as 2026-01-31T08:00:00Z; seconds (unix), milliseconds, microseconds or nanoseconds since 1970; or local, such as 2026-01-31 08:00, in --time-zone." placeholder:"FORMAT"`
	TimeZone   string          `help:"Time zone of local times, such as Europe/Berlin." implied:"none" placeholder:"ZONE"`
	Metric     []string        `help:"Metric and its column, such as co2_ppm=CO2, or METRIC=COLUMN*SCALE+OFFSET for value = number * SCALE + OFFSET; repeat it for each metric." placeholder:"METRIC=COLUMN" sep:"none"`
	Delimiter  string          `default:"auto" enum:"auto,comma,semicolon,tab" help:"What separates the values of a line: comma, semicolon or tab; auto recognises it." placeholder:"DELIMITER"`
	Decimal    string          `default:"auto" enum:"auto,point,comma" help:"Decimal point or comma; auto recognises it." placeholder:"SIGN"`
	NoQuotes   bool            `help:"Quotes are part of the values."`
	SkipBad    string          `help:"Send the rest although lines cannot be read, and write those into this file." implied:"a bad line prevents the import" placeholder:"FILE"`
	DryRun     bool            `help:"Check the files, and send nothing."`
}

const (
	// sendAttempts is how often a request of uploads is sent: for hours, because an import that ended begins again.
	sendAttempts = 1000
	// maxShown is the most problems that are reported one by one.
	maxShown = 20
	// trialUnits is the number of units whose registration is checked at once. A report has at most 1,000 problems.
	trialUnits = 500
	// longHistory is from when on the chunks of a team may not suffice for a day, if they have the usual length of a week.
	longHistory = roomsensor.MaxTeamNewChunks * 7 * 24 * time.Hour
)

// Help returns the part of --help about what it does.
func (*Import) Help() string {
	return `The command reads all files twice: first it checks every line, and that the units are registered; then it ` +
		`sends the readings as uploads. If a line cannot be read, or a unit is not registered, nothing is sent, unless ` +
		`you give --skip-bad. The same readings are stored once, however often you import them: run the same command ` +
		`again after an interruption.

A CSV export of readings, in the long shape, needs no columns: only --units, or --device if it has one device. ` +
		`Other files need --time, --metric and --unit or --device. Delimiter, decimal comma, quotes and byte order mark ` +
		`are recognised. A line without any value is skipped.`
}

// Run imports files.
func (c *Import) Run(ctx context.Context, t *cli.Terminal) error {
	options, err := c.options()
	if err != nil {
		return err
	}
	if c.IngestKey == "" && !c.DryRun {
		return c.MissingKey()
	}
	i := &importer{Progress: t.NewProgress("import"), options: options, first: []badLine{}}
	defer i.close()
	if err := i.open(c.Files, t.Stdin, c.SkipBad); err != nil {
		return err
	}
	settings, shut := clientOptions(t)
	defer shut()
	if err := i.check(ctx); err != nil {
		return i.explain(ctx, c.IngestURL, err)
	}
	if err := c.tryUnits(ctx, i, settings); err != nil {
		return i.explain(ctx, c.IngestURL, err)
	}
	if c.DryRun {
		i.End()
		if err := t.Print(cli.Format{Output: "auto"}, i.result()); err != nil {
			return err
		}
	}
	if err := i.refusal(); err != nil || c.DryRun {
		return err
	}
	receiver, err := newReceiver(&c.Sender, append(settings, client.WithMaxAttempts(sendAttempts)))
	if err != nil {
		return err
	}
	if err := i.send(ctx, receiver); err != nil {
		return i.explain(ctx, c.IngestURL, err)
	}
	i.End()
	if err := t.Print(cli.Format{Output: "auto"}, i.result()); err != nil || i.sent > 0 {
		return err
	}
	return process.Refusef("Nothing was sent: the files have no reading that can be sent.")
}

// options returns the form of the files.
func (c *Import) options() (*csvimport.Options, error) {
	switch {
	case c.Time == "" && (c.Unit != "" || len(c.Metric) > 0 || c.TimeZone != "" || c.TimeFormat != "rfc3339"):
		return nil, cli.Usagef("--unit, --metric, --time-format and --time-zone need --time.")
	case c.Time != "" && len(c.Metric) == 0:
		return nil, cli.Usagef("--time needs --metric, such as --metric co2_ppm=CO2.")
	case c.Device != nil && (c.Unit != "" || c.Units != ""):
		return nil, cli.Usagef("--device cannot be combined with --unit and --units. Omit one of them.")
	case c.Device == nil && c.Time == "" && c.Units == "":
		return nil, cli.Usagef("Say which units the readings are of: give --units or --device.")
	case c.Device == nil && c.Time != "" && c.Unit == "":
		return nil, cli.Usagef("Say which units the readings are of: give --unit or --device.")
	}
	o := &csvimport.Options{
		Time: c.Time, Unit: c.Unit, NoQuotes: c.NoQuotes, Now: time.Now(),
		Delimiter: map[string]rune{"comma": ',', "semicolon": ';', "tab": '\t'}[c.Delimiter],
		Decimal:   map[string]rune{"point": '.', "comma": ','}[c.Decimal],
	}
	if c.Device != nil {
		o.Device = string(*c.Device)
	}
	var err error
	if o.TimeFormat, err = mapping.NewTimeFormat(c.TimeFormat, c.TimeZone); err != nil {
		return nil, cli.Usagef("--time-format, --time-zone: the time %v.", err)
	}
	for _, text := range c.Metric {
		column, err := csvimport.ParseMetricColumn(text)
		if err != nil {
			return nil, cli.Usagef("--metric %v.", err)
		}
		o.Metrics = append(o.Metrics, column)
	}
	if c.Units != "" {
		file, err := os.Open(c.Units)
		if err != nil {
			return nil, cli.Usagef("--units cannot be read: %v.", err)
		}
		defer func() { _ = file.Close() }()
		if o.Units, err = csvimport.ReadUnits(file); err != nil {
			return nil, process.Refusef("%s: %v.", c.Units, err)
		}
	}
	return o, nil
}

// tryUnits checks that the units are registered and installed. A dry run without a key does not.
func (c *Import) tryUnits(ctx context.Context, i *importer, settings []client.Option) error {
	if c.IngestKey == "" {
		return nil
	}
	receiver, err := newReceiver(&c.Sender, settings)
	if err != nil {
		return err
	}
	return i.tryUnits(ctx, receiver)
}

func newReceiver(c *config.Sender, settings []client.Option) (*client.Receiver, error) {
	key, err := c.IngestKey.Read()
	if err != nil {
		return nil, cli.Usagef("--ingest-key (INGEST_KEY) %v.", err)
	}
	receiver, err := client.NewReceiver(c.IngestURL, key, settings...)
	if err != nil {
		return nil, cli.Usagef("--ingest-url (INGEST_URL): %v.", err)
	}
	return receiver, nil
}
