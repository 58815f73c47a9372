package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/google/uuid"

	"roomsensor/internal/admin"
	"roomsensor/internal/cli"
	"roomsensor/internal/process"
	"roomsensor/internal/roomsensor"
)

type personCmd struct {
	Export personExportCmd `cmd:"" help:"Write everything that a team stores about a person into a new directory."`
	Erase  personEraseCmd  `cmd:"" help:"Replace the name of a person permanently. The readings stay."`
}

// ofPerson are the flags of a command about a person whom assignments name.
type ofPerson struct {
	ofTeam
	Label       *cli.Name `help:"Label of the person's assignments." implied:"none" placeholder:"LABEL"`
	ExternalRef *cli.Name `help:"External reference of the person's assignments." implied:"none" placeholder:"REF"`
}

// Validate checks that the person is named in one way. The parser calls it.
func (c *ofPerson) Validate() error {
	if (c.Label == nil) == (c.ExternalRef == nil) {
		return cli.Usagef("give either --label or --external-ref: it must be exactly what the assignments of the person have")
	}
	return nil
}

func (c *ofPerson) subject() roomsensor.Subject {
	return roomsensor.Subject{Label: c.Label.Optional(), ExternalRef: c.ExternalRef.Optional()}
}

// The files of an export.
const (
	personFile   = "person.json"
	readingsFile = "readings.csv"
)

type personExportCmd struct {
	ofPerson
	To string `help:"Directory to create." placeholder:"DIRECTORY" required:""`
}

// Help returns the part of --help about the files.
func (*personExportCmd) Help() string {
	return personFile + ` has the assignments with their devices, their entries in the audit log, and other places that ` +
		`contain the name. ` + readingsFile + ` has the readings of the rooms during the assignments. Only you can read ` +
		`the directory.`
}

// exportedPerson is the result of an export.
type exportedPerson struct {
	Directory   string `json:"directory"`
	Assignments int    `json:"assignments"`
	Readings    int64  `json:"readings"`
	AuditLog    int    `json:"audit_log"`
	Mentions    int    `json:"mentions"`
}

// Run exports a person.
func (c *personExportCmd) Run(ctx context.Context, t *cli.Terminal) error {
	return operateTeam(ctx, t, c.onDatabase, c.Team, func(o *admin.Operator, team uuid.UUID) (any, error) {
		record, err := c.write(ctx, o, team)
		if err != nil {
			return nil, err
		}
		if record.Empty() {
			warnNobody(t)
		}
		result := exportedPerson{c.To, len(record.Assignments), 0, len(record.AuditLog), len(record.Mentions)}
		for i := range record.Assignments {
			result.Readings += record.Assignments[i].Readings
		}
		return result, nil
	})
}

// write creates the directory with both files, or nothing.
func (c *personExportCmd) write(ctx context.Context, o *admin.Operator, team uuid.UUID) (admin.PersonRecord, error) {
	if err := os.Mkdir(c.To, 0o700); err != nil {
		return admin.PersonRecord{}, process.Refusef("--to must be a directory that does not exist yet: %v", err)
	}
	record, err := c.writeFiles(ctx, o, team)
	if err != nil {
		err = errors.Join(err, os.RemoveAll(c.To))
	}
	return record, err
}

func (c *personExportCmd) writeFiles(
	ctx context.Context, o *admin.Operator, team uuid.UUID,
) (admin.PersonRecord, error) {
	readings, err := createPrivate(c.To, readingsFile)
	if err != nil {
		return admin.PersonRecord{}, err
	}
	record, err := o.ExportPerson(ctx, team, c.subject(), readings)
	if err = errors.Join(err, readings.Close()); err != nil {
		return record, err
	}
	object, err := createPrivate(c.To, personFile)
	if err != nil {
		return record, err
	}
	return record, errors.Join(cli.PrintLine(object, record), object.Close())
}

// createPrivate creates a file that only its owner can read.
func createPrivate(directory, name string) (*os.File, error) {
	path := filepath.Join(directory, name)
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // The operator names it.
	if err != nil {
		return nil, process.Refusef("The file cannot be created: %v", err)
	}
	return file, nil
}

type personEraseCmd struct {
	ofPerson
	cli.Confirmation
	Mentions bool `help:"Also replace the name, in any letter case, wherever the audit log, stored responses, rejects and newest messages of sources of the team contain it."`
	DryRun   bool `help:"Show what would change, and change nothing."`
}

// Help returns the part of --help about what remains.
func (*personEraseCmd) Help() string {
	return `The label of all assignments of the person becomes "erased person" with a random id, and their external_ref ` +
		`null, also in the audit log and in stored responses, and notes about the person are ` +
		`deleted, in one transaction. The result lists, as mentions, where ` +
		`the name still is. Names and tags of devices, keys and people are never changed: change them, and run the ` +
		`command again with --mentions.`
}

// Run erases a person.
func (c *personEraseCmd) Run(ctx context.Context, t *cli.Terminal) error {
	return operateTeam(ctx, t, c.onDatabase, c.Team, func(o *admin.Operator, team uuid.UUID) (any, error) {
		plan, err := o.ErasePerson(ctx, team, c.subject(), admin.PersonErasure{Mentions: c.Mentions, DryRun: true})
		if err != nil {
			return nil, err
		}
		if plan.Empty() && len(plan.Mentions) == 0 {
			warnNobody(t)
		}
		if c.DryRun {
			return plan, nil
		}
		if !plan.Empty() {
			err := t.ConfirmChange(ctx, c.Confirmation, "This replaces the name of the person permanently:", plan)
			if err != nil {
				return nil, err
			}
		}
		return o.ErasePerson(ctx, team, c.subject(), admin.PersonErasure{Mentions: c.Mentions})
	})
}

// warnNobody warns that a name is unknown. It does not repeat the name, because stderr may be kept.
func warnNobody(t *cli.Terminal) {
	_, _ = fmt.Fprintln(t.Stderr, "Warning: the team stores nothing under this name. Check its spelling and letter case.")
}
