package main

import (
	"context"
	"slices"
	"strings"

	"github.com/google/uuid"

	"roomsensor/internal/app"
	"roomsensor/internal/config"
	"roomsensor/internal/roomsensor"
)

type rejectsCmd struct {
	List   rejectsListCmd   `cmd:"" help:"List rejects, newest first."`
	Show   rejectsShowCmd   `cmd:"" help:"Show a reject with what arrived."`
	Replay rejectsReplayCmd `cmd:"" help:"Judge and store rejects once more, as a worker does."`
}

// mostRejects is the most that one list holds.
const mostRejects = 100_000

// reason is one of the reasons of decision 41.
type reason roomsensor.Reason

// UnmarshalText reads a reason.
func (v *reason) UnmarshalText(text []byte) error {
	if !slices.Contains(roomsensor.Reasons, roomsensor.Reason(text)) {
		return usagef("%q is not a reason. The reasons are %s", text, reasonNames())
	}
	*v = reason(text)
	return nil
}

func (v *reason) optional() *roomsensor.Reason { return (*roomsensor.Reason)(v) }

func reasonNames() string {
	names := make([]string, len(roomsensor.Reasons))
	for i, r := range roomsensor.Reasons {
		names[i] = string(r)
	}
	return strings.Join(names, ", ")
}

type rejectsListCmd struct {
	config.Database
	Team       *id         `help:"Only those that came with a credential of this team." placeholder:"ID"`
	Reason     *reason     `help:"Only those of this reason." placeholder:"REASON"`
	HardwareID *hardwareID `help:"Only those of this unit." name:"hardware-id" placeholder:"dev:N"`
	Since      *instant    `help:"Only those that arrived at this time or later." placeholder:"TIME"`
	Limit      int         `default:"1000" help:"The most that are listed, 1 to 100000."`
}

// Run carries the command out.
func (c *rejectsListCmd) Run(ctx context.Context, t *terminal) error {
	if c.Limit < 1 || c.Limit > mostRejects {
		return usagef("--limit must be a whole number from 1 to %d.", mostRejects)
	}
	return operate(ctx, t, c.Database, func(ctx context.Context, o *app.Operator) (app.List[app.Reject], error) {
		return o.Rejects(ctx, roomsensor.RejectQuery{
			TeamID: c.Team.optional(), Reason: c.Reason.optional(), HardwareID: c.HardwareID.optional(),
			Since: c.Since.optional(), Limit: c.Limit,
		})
	})
}

type rejectsShowCmd struct {
	config.Database
	ID id `arg:"" help:"Id of the reject."`
}

// Run carries the command out.
func (c *rejectsShowCmd) Run(ctx context.Context, t *terminal) error {
	return operate(ctx, t, c.Database, func(ctx context.Context, o *app.Operator) (app.RejectPayload, error) {
		return o.Reject(ctx, uuid.UUID(c.ID))
	})
}

type rejectsReplayCmd struct {
	config.Database
	ID     []id    `arg:"" help:"Ids of the rejects." optional:""`
	Reason *reason `help:"Every reject of this reason; beside ids, only those of them." placeholder:"REASON"`
}

// Run carries the command out.
func (c *rejectsReplayCmd) Run(ctx context.Context, t *terminal) error {
	if len(c.ID) == 0 && c.Reason == nil {
		return usagef("Say which rejects: give their ids, or --reason.")
	}
	ids := make([]uuid.UUID, len(c.ID))
	for i := range c.ID {
		ids[i] = uuid.UUID(c.ID[i])
	}
	return operate(ctx, t, c.Database, func(ctx context.Context, o *app.Operator) (app.Replayed, error) {
		return o.ReplayRejects(ctx, ids, c.Reason.optional(), t.stderr)
	})
}
