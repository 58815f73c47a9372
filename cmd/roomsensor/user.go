package main

import (
	"context"

	"github.com/google/uuid"

	"roomsensor/internal/admin"
	"roomsensor/internal/cli"
	"roomsensor/internal/config"
	"roomsensor/internal/roomsensor"
)

type userCmd struct {
	Invite  userInviteCmd  `cmd:"" help:"Create a link with which a person joins a team. It is shown once."`
	List    userListCmd    `cmd:"" help:"List the people who may sign in to the dashboard, with their teams."`
	Reset   userResetCmd   `cmd:"" help:"Create a link with which a person sets another password. It is shown once."`
	Disable userDisableCmd `cmd:"" help:"End all sessions of a person, and refuse further ones."`
	Enable  userEnableCmd  `cmd:"" help:"Let a disabled person sign in again."`
	Delete  userDeleteCmd  `cmd:"" help:"Delete the account of a person permanently."`
}

type userInviteCmd struct {
	ofTeam
	config.DashboardSite
	Email email  `help:"Email address of the person." placeholder:"EMAIL" required:""`
	Role  string `enum:"viewer,editor,admin" help:"What the person may do: viewer, editor or admin." placeholder:"ROLE" required:""`
}

// Run creates an invitation.
func (c *userInviteCmd) Run(ctx context.Context, t *cli.Terminal) error {
	role, _ := roomsensor.ParseRole(c.Role) // The parser accepts the names of roles only.
	return operateTeam(ctx, t, c.onDatabase, c.Team, func(o *admin.Operator, team uuid.UUID) (any, error) {
		return o.InviteUser(ctx, team, string(c.Email), role, c.URL(""))
	})
}

type userListCmd struct{ onDatabase }

// Run lists all people.
func (c *userListCmd) Run(ctx context.Context, t *cli.Terminal) error {
	return operate(ctx, t, c.onDatabase, func(o *admin.Operator) (any, error) { return o.Users(ctx) })
}

// ofUser are the flags of a command for one person.
type ofUser struct {
	onDatabase
	Email email `arg:"" help:"Email address of the person."`
}

type userResetCmd struct {
	ofUser
	config.DashboardSite
}

// Run creates a link for another password.
func (c *userResetCmd) Run(ctx context.Context, t *cli.Terminal) error {
	return operate(ctx, t, c.onDatabase, func(o *admin.Operator) (any, error) {
		return o.ResetUser(ctx, string(c.Email), c.URL(""))
	})
}

type userDisableCmd struct{ ofUser }

// Run disables a person.
func (c *userDisableCmd) Run(ctx context.Context, t *cli.Terminal) error {
	return operate(ctx, t, c.onDatabase, func(o *admin.Operator) (any, error) {
		return o.DisableUser(ctx, string(c.Email))
	})
}

type userEnableCmd struct{ ofUser }

// Run enables a person.
func (c *userEnableCmd) Run(ctx context.Context, t *cli.Terminal) error {
	return operate(ctx, t, c.onDatabase, func(o *admin.Operator) (any, error) {
		return o.EnableUser(ctx, string(c.Email))
	})
}

type userDeleteCmd struct {
	ofUser
	cli.Confirmation
	EraseAuditLog bool `help:"Also replace the address of the person in the audit log. Without it, the log keeps the address until AUDIT_KEEP is over."`
}

// Run deletes a person.
func (c *userDeleteCmd) Run(ctx context.Context, t *cli.Terminal) error {
	return operate(ctx, t, c.onDatabase, func(o *admin.Operator) (any, error) {
		user, err := o.UserWithTeams(ctx, string(c.Email))
		if err != nil {
			return nil, err
		}
		if err := t.ConfirmDeletion(ctx, c.Confirmation, "account", user); err != nil {
			return nil, err
		}
		return o.DeleteUser(ctx, string(c.Email), c.EraseAuditLog)
	})
}
