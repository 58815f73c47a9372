package main

import (
	"context"

	"github.com/google/uuid"

	"roomsensor/internal/admin"
	"roomsensor/internal/cli"
	"roomsensor/internal/roomsensor/accounts"
)

type teamCmd struct {
	Create       teamCreateCmd       `cmd:"" help:"Create a team."`
	List         teamListCmd         `cmd:"" help:"List all teams."`
	Show         teamShowCmd         `cmd:"" help:"Show a team with its settings."`
	Set          teamSetCmd          `cmd:"" help:"Change the time zone, night and limits of a team."`
	SetRetention teamSetRetentionCmd `cmd:"" help:"Set the age at which the readings of a team are deleted."`
	Rename       teamRenameCmd       `cmd:"" help:"Rename a team."`
	Delete       teamDeleteCmd       `cmd:"" help:"Delete a team with its devices, readings, keys and rejects permanently."`
}

// teamName is the name that a command gives a team.
type teamName struct {
	Name          cli.Name `help:"Name of the team." placeholder:"NAME" required:""`
	AllowSameName bool     `help:"Accept a name that another team has."`
}

// check refuses the name of another team than the given one.
func (n *teamName) check(ctx context.Context, o *admin.Operator, team uuid.UUID) error {
	if n.AllowSameName {
		return nil
	}
	return o.CheckTeamName(ctx, string(n.Name), team)
}

type teamCreateCmd struct {
	onDatabase
	teamName
}

// Run creates a team.
func (c *teamCreateCmd) Run(ctx context.Context, t *cli.Terminal) error {
	return operate(ctx, t, c.onDatabase, func(o *admin.Operator) (any, error) {
		if err := c.check(ctx, o, uuid.Nil); err != nil {
			return nil, err
		}
		return o.CreateTeam(ctx, string(c.Name))
	})
}

type teamListCmd struct{ onDatabase }

// Run lists all teams.
func (c *teamListCmd) Run(ctx context.Context, t *cli.Terminal) error {
	return operate(ctx, t, c.onDatabase, func(o *admin.Operator) (any, error) { return o.Teams(ctx) })
}

// ofTeam are the flags of a command for one team.
type ofTeam struct {
	onDatabase
	Team cli.Name `help:"Name or id of the team." placeholder:"TEAM" required:""`
}

// operateTeam is operate for a command that names a team.
func operateTeam(
	ctx context.Context, t *cli.Terminal, c onDatabase, team cli.Name,
	do func(o *admin.Operator, team uuid.UUID) (object any, err error),
) error {
	return operate(ctx, t, c, func(o *admin.Operator) (any, error) {
		id, err := o.FindTeam(ctx, string(team))
		if err != nil {
			return nil, err
		}
		return do(o, id)
	})
}

type teamShowCmd struct {
	onDatabase
	Team cli.Name `arg:"" help:"Name or id of the team."`
}

// Run shows a team.
func (c *teamShowCmd) Run(ctx context.Context, t *cli.Terminal) error {
	return operateTeam(ctx, t, c.onDatabase, c.Team, func(o *admin.Operator, team uuid.UUID) (any, error) {
		return o.TeamSettings(ctx, team)
	})
}

type teamSetCmd struct {
	onDatabase
	Team     cli.Name    `arg:"" help:"Name or id of the team."`
	TimeZone *timeZone   `help:"Time zone of the team, an IANA name such as Europe/Berlin." implied:"unchanged" placeholder:"ZONE"`
	Night    *nightHours `help:"When its nights begin and end." implied:"unchanged" placeholder:"FROM-TO"`
	Limit    []limit     `help:"Range in which a metric is fine. Each end is WARN/BAD, one number for both, or missing. Can be repeated." placeholder:"METRIC=LOW..HIGH" sep:"none"`
}

// Run changes the settings of a team.
func (c *teamSetCmd) Run(ctx context.Context, t *cli.Terminal) error {
	return operateTeam(ctx, t, c.onDatabase, c.Team, func(o *admin.Operator, team uuid.UUID) (any, error) {
		return o.UpdateTeamSettings(ctx, team, func(settings *accounts.TeamSettings) {
			if c.TimeZone != nil {
				settings.TimeZone = c.TimeZone.Location
			}
			if c.Night != nil {
				settings.Night = c.Night.NightHours
			}
			for _, limit := range c.Limit {
				settings.Limits.Limits[limit.metric] = limit.Limit
			}
		})
	})
}

type teamSetRetentionCmd struct {
	onDatabase
	cli.Confirmation
	Team cli.Name  `arg:"" help:"Name or id of the team."`
	Keep retention `arg:"" help:"How long readings are kept, such as 400d, or none for no limit."`
}

// retentionHelp is the part of --help about what a retention does.
const retentionHelp = `The command counts the readings that are older than that now, and asks before it sets a ` +
	`retention. Workers delete readings with their samples once an hour, up to the start of a day of UTC. Where several ` +
	`ages apply, that of the device replaces that of the team, and READINGS_KEEP, which applies to all teams, remains. ` +
	`The change feed does not report it: copies keep these readings.`

// Help returns the part of --help about what a retention does.
func (*teamSetRetentionCmd) Help() string { return retentionHelp }

// Run changes the retention of a team.
func (c *teamSetRetentionCmd) Run(ctx context.Context, t *cli.Terminal) error {
	return operateTeam(ctx, t, c.onDatabase, c.Team, func(o *admin.Operator, team uuid.UUID) (any, error) {
		return setRetention(ctx, t, c.Confirmation, team, c.Keep, o.PreviewTeamRetention, o.SetTeamRetention)
	})
}

// setRetention sets the retention of a team or a device, and asks before it deletes readings.
func setRetention[Changed any](
	ctx context.Context, t *cli.Terminal, c cli.Confirmation, id uuid.UUID, keep retention,
	preview func(context.Context, uuid.UUID, *int32) (admin.RetentionPreview, error),
	set func(context.Context, uuid.UUID, *int32) (Changed, error),
) (any, error) {
	shown, err := preview(ctx, id, keep.days)
	if err == nil && shown.KeepDays != nil {
		err = t.ConfirmChange(ctx, c, "This deletes these readings permanently, and each later one at this age:", shown)
	}
	if err != nil {
		return nil, err
	}
	return set(ctx, id, keep.days)
}

type teamRenameCmd struct {
	onDatabase
	teamName
	Team cli.Name `arg:"" help:"Name or id of the team."`
}

// Run renames a team.
func (c *teamRenameCmd) Run(ctx context.Context, t *cli.Terminal) error {
	return operateTeam(ctx, t, c.onDatabase, c.Team, func(o *admin.Operator, team uuid.UUID) (any, error) {
		if err := c.check(ctx, o, team); err != nil {
			return nil, err
		}
		return o.RenameTeam(ctx, team, string(c.Name))
	})
}

type teamDeleteCmd struct {
	onDatabase
	cli.Confirmation
	Team cli.Name `arg:"" help:"Name or id of the team."`
}

// Help returns the part of --help about what remains.
func (*teamDeleteCmd) Help() string {
	return `The command lists what it deletes and asks before it does. It first revokes the team's keys. It works in ` +
		`short transactions: run it again if it was interrupted, and it deletes the rest. Uploads stay in the stream for ` +
		`STREAM_KEEP; those that no worker has stored yet become rejects with the team's id, which a second run ` +
		`with this id deletes.`
}

// Run deletes a team.
func (c *teamDeleteCmd) Run(ctx context.Context, t *cli.Terminal) error {
	return operateTeam(ctx, t, c.onDatabase, c.Team, func(o *admin.Operator, team uuid.UUID) (any, error) {
		contents, err := o.TeamContents(ctx, team)
		if err != nil {
			return nil, err
		}
		if err := t.ConfirmDeletion(ctx, c.Confirmation, "team", contents); err != nil {
			return nil, err
		}
		return o.DeleteTeam(ctx, team, t.Stderr)
	})
}
