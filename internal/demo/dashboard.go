package demo

import (
	"context"
	"errors"
	"fmt"

	"roomsensor/internal/admin"
	"roomsensor/internal/roomsensor"
)

// demoRoles are the roles of the people of the team, one of each.
var demoRoles = []roomsensor.Role{roomsensor.Viewer, roomsensor.Editor, roomsensor.Admin}

// emailOf returns the address of the person with a role. Nobody gets mail at it.
func emailOf(role roomsensor.Role) string { return role.String() + "@example.com" }

// dashboardURL returns the address of the dashboard.
func (d *demo) dashboardURL() string { return d.dashboard.URL(d.dashboard.DashboardAddr) }

// signInLink returns a link with which somebody gets the account of a role: until a password was set, an invitation,
// which replaces that of the last run; after that, a link that sets another password.
func (d *demo) signInLink(ctx context.Context, role roomsensor.Role) (string, error) {
	email := emailOf(role)
	user, err := d.store.UserByEmail(ctx, email)
	if err == nil {
		_, err = d.store.Membership(ctx, d.state.TeamID, user.ID)
	}
	var link admin.Link
	switch {
	case err == nil:
		link, err = d.operator.ResetUser(ctx, email, d.dashboardURL())
	case errors.Is(err, roomsensor.ErrNotFound):
		link, err = d.operator.InviteUser(ctx, d.state.TeamID, email, role, d.dashboardURL())
	default:
		err = fmt.Errorf("looking for the people of the demo: %w", err)
	}
	return link.Link, err
}

// printSignIn prints a link for each role.
func (d *demo) printSignIn(ctx context.Context) error {
	d.printf("\nOpen the dashboard with one of these links. Each works once and sets a password:")
	for _, role := range demoRoles {
		link, err := d.signInLink(ctx, role)
		if err != nil {
			return err
		}
		d.printf("  %-19s %s", emailOf(role), link)
	}
	return nil
}
