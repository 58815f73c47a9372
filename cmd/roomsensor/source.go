package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/google/uuid"

	"roomsensor/internal/admin"
	"roomsensor/internal/cli"
	"roomsensor/internal/config"
	"roomsensor/internal/roomsensor"
)

type sourceCmd struct {
	Create  sourceCreateCmd  `cmd:"" help:"Create a source, to which devices or a platform post in their own format. Its key is shown once."`
	List    sourceListCmd    `cmd:"" help:"List the sources of a team, with what they received in the last 24 hours."`
	Show    sourceShowCmd    `cmd:"" help:"Show a source with its mapping."`
	Set     sourceSetCmd     `cmd:"" help:"Change a source."`
	Test    sourceTestCmd    `cmd:"" help:"Show what a source would make of a message. Stores nothing."`
	Delete  sourceDeleteCmd  `cmd:"" help:"Delete a source. Its readings and rejects stay."`
	Formats sourceFormatsCmd `cmd:"" help:"List the formats of sources, or print the mapping of one."`
}

type sourceCreateCmd struct {
	ofTeam
	config.ReceiverSite
	Name          cli.Name `help:"Name of the source, unique in its team." placeholder:"NAME" required:""`
	MessageFormat string   `help:"Format of the messages, as source formats lists them." name:"format" placeholder:"FORMAT" required:""`
	Mapping       jsonFile `help:"File with a JSON document whose members replace those of the format; - for standard input." implied:"that of the format" placeholder:"FILE"`
}

// jsonFile is the name of a file with a JSON document, or - for standard input.
type jsonFile string

// read returns the content; empty without a file.
func (f jsonFile) read(t *cli.Terminal) (string, error) {
	if f == "" {
		return "", nil
	}
	text, err := readInput(string(f), t)
	if err == nil && len(text) == 0 {
		err = cli.Usagef("The mapping is empty. Write a JSON document, or omit --mapping")
	}
	return string(text), err
}

// readInput reads a file, or standard input for -.
func readInput(name string, t *cli.Terminal) (text []byte, err error) {
	if name == "-" {
		text, err = io.ReadAll(t.Stdin)
	} else {
		text, err = os.ReadFile(name) //nolint:gosec // The operator names it.
	}
	if err != nil {
		return nil, cli.Usagef("The file cannot be read: %v.", err)
	}
	return text, nil
}

// Run creates a source.
func (c *sourceCreateCmd) Run(ctx context.Context, t *cli.Terminal) error {
	members, err := c.Mapping.read(t)
	if err != nil {
		return err
	}
	if err := admin.CheckSource(c.MessageFormat, members); err != nil {
		return cli.Usagef("--format, --mapping: %v", err)
	}
	return operateTeam(ctx, t, c.onDatabase, c.Team, func(o *admin.Operator, team uuid.UUID) (any, error) {
		return o.CreateSource(ctx, roomsensor.Source{
			TeamID: team, Name: string(c.Name), Format: c.MessageFormat, Mapping: members,
		}, c.SourceURL)
	})
}

type sourceListCmd struct{ ofTeam }

// Run lists the sources of a team.
func (c *sourceListCmd) Run(ctx context.Context, t *cli.Terminal) error {
	return operateTeam(ctx, t, c.onDatabase, c.Team, func(o *admin.Operator, team uuid.UUID) (any, error) {
		return o.Sources(ctx, team)
	})
}

// ofSource are the flags of a command for one source.
type ofSource struct {
	onDatabase
	Source cli.Name  `arg:"" help:"Id of the source, or its name together with --team."`
	Team   *cli.Name `help:"Name or id of the source's team." implied:"all teams" placeholder:"TEAM"`
}

// operateSource is operate for a command that names a source.
func operateSource(
	ctx context.Context, t *cli.Terminal, c ofSource,
	do func(o *admin.Operator, s *roomsensor.Source) (object any, err error),
) error {
	return operate(ctx, t, c.onDatabase, func(o *admin.Operator) (any, error) {
		s, err := o.FindSource(ctx, c.Team.Optional(), string(c.Source))
		if err != nil {
			return nil, err
		}
		return do(o, &s)
	})
}

type sourceShowCmd struct{ ofSource }

// Run shows a source.
func (c *sourceShowCmd) Run(ctx context.Context, t *cli.Terminal) error {
	return operateSource(ctx, t, c.ofSource, func(_ *admin.Operator, s *roomsensor.Source) (any, error) {
		return admin.ViewSource(s), nil
	})
}

type sourceSetCmd struct {
	ofSource
	Name          *cli.Name `help:"New name." implied:"unchanged" placeholder:"NAME"`
	MessageFormat *string   `help:"New format of the messages." implied:"unchanged" name:"format" placeholder:"FORMAT"`
	Mapping       jsonFile  `help:"File with a JSON document whose members replace those of the format; - for standard input." implied:"unchanged" placeholder:"FILE" xor:"mapping"`
	NoMapping     bool      `help:"Use the mapping of the format as it is." xor:"mapping"`
	Disable       bool      `help:"Refuse messages. Credentials stay." xor:"disabled"`
	Enable        bool      `help:"Accept messages again." xor:"disabled"`
}

// Help returns the part of --help about messages that are stored already.
func (*sourceSetCmd) Help() string {
	return `A message is read with the mapping that the source has when a worker stores it. For messages that did not ` +
		`fit the old mapping, run roomsensor rejects replay --source SOURCE afterwards.`
}

// Run changes a source.
func (c *sourceSetCmd) Run(ctx context.Context, t *cli.Terminal) error {
	change := roomsensor.SourceChange{Name: c.Name.Optional(), Format: c.MessageFormat}
	if c.Mapping != "" || c.NoMapping {
		members, err := c.Mapping.read(t)
		if err != nil {
			return err
		}
		change.Mapping = &members
	}
	if c.Disable || c.Enable {
		change.Disabled = &c.Disable
	}
	if change == (roomsensor.SourceChange{}) {
		return cli.Usagef("Say what to change: --name, --format, --mapping, --no-mapping, --disable or --enable.")
	}
	return operateSource(ctx, t, c.ofSource, func(o *admin.Operator, s *roomsensor.Source) (any, error) {
		format, members := s.Format, s.Mapping
		if change.Format != nil {
			format = *change.Format
		}
		if change.Mapping != nil {
			members = *change.Mapping
		}
		if err := admin.CheckSource(format, members); err != nil {
			return nil, cli.Usagef("--format, --mapping: %v", err)
		}
		return o.ChangeSource(ctx, s, change)
	})
}

type sourceTestCmd struct {
	ofSource
	File      string   `arg:"" help:"File with a message; - for standard input."`
	Mapping   jsonFile `help:"File with a JSON document, as that of source set, to try in place of the source's." implied:"that of the source" placeholder:"FILE"`
	Precision string   `default:"ns" enum:"ns,us,ms,s" help:"Precision of the times in line protocol." placeholder:"UNIT"`
	Suggest   bool     `help:"Also list the paths of the message with their values, and those that fit each metric."`
}

// Run shows what a worker would make of a message.
func (c *sourceTestCmd) Run(ctx context.Context, t *cli.Terminal) error {
	text, err := readInput(c.File, t)
	if err != nil {
		return err
	}
	if len(text) > roomsensor.MaxUploadBytes {
		return cli.Usagef("The message has %d bytes; at most %d are allowed.", len(text), roomsensor.MaxUploadBytes)
	}
	members, err := c.Mapping.read(t)
	if err != nil {
		return err
	}
	return operateSource(ctx, t, c.ofSource, func(o *admin.Operator, s *roomsensor.Source) (any, error) {
		if c.Mapping != "" {
			s.Mapping = members
			if err := admin.CheckSource(s.Format, members); err != nil {
				return nil, cli.Usagef("--mapping: %v", err)
			}
		}
		return o.TestSource(ctx, s, text, c.Precision, c.Suggest)
	})
}

type sourceDeleteCmd struct {
	ofSource
	cli.Confirmation
}

const deletesSource = "This deletes the source permanently and revokes its credentials. Its readings and rejects stay:"

// Run deletes a source.
func (c *sourceDeleteCmd) Run(ctx context.Context, t *cli.Terminal) error {
	return operateSource(ctx, t, c.ofSource, func(o *admin.Operator, s *roomsensor.Source) (any, error) {
		if err := t.ConfirmChange(ctx, c.Confirmation, deletesSource, admin.ViewSource(s)); err != nil {
			return nil, err
		}
		return o.DeleteSource(ctx, s)
	})
}

type sourceFormatsCmd struct {
	cli.Format
	Name string `arg:"" help:"Format whose mapping is printed." optional:""`
}

// Run lists the formats, or prints one.
func (c *sourceFormatsCmd) Run(t *cli.Terminal) error {
	if c.Name == "" {
		return t.Print(c.Format, admin.Formats())
	}
	text, err := admin.FormatText(c.Name)
	if err != nil {
		return err
	}
	if _, err := t.Stdout.Write(text); err != nil {
		return fmt.Errorf("writing the mapping: %w", err)
	}
	return nil
}
