package main

import (
	"context"
	"slices"

	"github.com/google/uuid"

	"roomsensor/internal/admin"
	"roomsensor/internal/cli"
	"roomsensor/internal/roomsensor"
)

type rejectsCmd struct {
	List   rejectsListCmd   `cmd:"" help:"List rejects, newest first."`
	Show   rejectsShowCmd   `cmd:"" help:"Show a reject with its payload."`
	Replay rejectsReplayCmd `cmd:"" help:"Check and store rejects again, as a worker does."`
}

// maxRejects is the maximum of one list.
const maxRejects = 100_000

// reason is the reason of a reject (reject reasons, decision 41).
type reason roomsensor.Reason

// UnmarshalText checks a reason.
func (v *reason) UnmarshalText(text []byte) error {
	if !slices.Contains(roomsensor.Reasons, roomsensor.Reason(text)) {
		return cli.Usagef("%q is not a reason. The reasons are %s", text, roomsensor.ReasonNames())
	}
	*v = reason(text)
	return nil
}

func (v *reason) optional() *roomsensor.Reason { return (*roomsensor.Reason)(v) }

type rejectsListCmd struct {
	onDatabase
	Team       *cli.Name       `help:"Only rejects of uploads with an ingest key of the team with this name or id." implied:"all" placeholder:"TEAM"`
	Reason     *reason         `help:"Only rejects with this reason." implied:"all" placeholder:"REASON"`
	HardwareID *cli.HardwareID `help:"Only rejects of this unit." implied:"all" name:"hardware-id" placeholder:"dev:N"`
	Unit       *cli.Name       `help:"Only rejects of the unit with this name, as its sender names it." implied:"all" placeholder:"UNIT"`
	Source     *cli.Name       `help:"Only rejects of messages of the source with this id, or with this name together with --team." implied:"all" placeholder:"SOURCE"`
	Since      *cli.Instant    `help:"Only rejects that arrived at this time or later." implied:"all" placeholder:"TIME"`
	Limit      int             `default:"1000" help:"Maximum number of rejects, 1 to 100000." placeholder:"N"`
}

// Run lists rejects.
func (c *rejectsListCmd) Run(ctx context.Context, t *cli.Terminal) error {
	if c.Limit < 1 || c.Limit > maxRejects {
		return cli.Usagef("--limit must be a whole number from 1 to %d.", maxRejects)
	}
	return operate(ctx, t, c.onDatabase, func(o *admin.Operator) (any, error) {
		team, err := o.FindTeamIfNamed(ctx, c.Team.Optional())
		if err != nil {
			return nil, err
		}
		source, err := o.FindSourceIfNamed(ctx, c.Team.Optional(), c.Source.Optional())
		if err != nil {
			return nil, err
		}
		return o.Rejects(ctx, roomsensor.RejectQuery{
			TeamID: team, Reason: c.Reason.optional(), HardwareID: c.HardwareID.Optional(), Unit: c.Unit.Optional(),
			SourceID: source, Since: c.Since.Optional(), Limit: c.Limit,
		})
	})
}

type rejectsShowCmd struct {
	onDatabase
	ID cli.ID `arg:"" help:"Id of the reject."`
}

// Run prints a reject with its payload.
func (c *rejectsShowCmd) Run(ctx context.Context, t *cli.Terminal) error {
	return operate(ctx, t, c.onDatabase, func(o *admin.Operator) (any, error) { return o.Reject(ctx, uuid.UUID(c.ID)) })
}

type rejectsReplayCmd struct {
	onDatabase
	ID     []cli.ID  `arg:"" help:"Ids of the rejects." optional:""`
	Reason *reason   `help:"All rejects with this reason; with ids, only those of the ids that have it." implied:"any" placeholder:"REASON"`
	Unit   *cli.Name `help:"All rejects of this unit, as its sender names it." implied:"any" placeholder:"UNIT"`
	Source *cli.Name `help:"All rejects of messages of the source with this id, or with this name together with --team." implied:"any" placeholder:"SOURCE"`
	Team   *cli.Name `help:"Only rejects of the team with this name or id." implied:"all" placeholder:"TEAM"`
}

// Run replays rejects.
func (c *rejectsReplayCmd) Run(ctx context.Context, t *cli.Terminal) error {
	if len(c.ID) == 0 && c.Reason == nil && c.Unit == nil && c.Source == nil {
		return cli.Usagef("Specify the rejects to replay: give their ids, --reason, --unit or --source.")
	}
	ids := make([]uuid.UUID, len(c.ID))
	for i := range c.ID {
		ids[i] = uuid.UUID(c.ID[i])
	}
	return operate(ctx, t, c.onDatabase, func(o *admin.Operator) (any, error) {
		team, err := o.FindTeamIfNamed(ctx, c.Team.Optional())
		if err != nil {
			return nil, err
		}
		source, err := o.FindSourceIfNamed(ctx, c.Team.Optional(), c.Source.Optional())
		if err != nil {
			return nil, err
		}
		query := roomsensor.RejectQuery{
			TeamID: team, Reason: c.Reason.optional(), Unit: c.Unit.Optional(), SourceID: source,
		}
		return o.ReplayRejects(ctx, ids, query, t.Stderr)
	})
}
