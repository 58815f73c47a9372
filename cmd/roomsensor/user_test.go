package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/cli"
)

func TestUsers(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	o.environment["DASHBOARD_URL"] = "https://dashboard.example.com"
	require.Empty(t, o.data("user", "list"))
	team := o.id("id", "team", "create", "--name", "Riverside Athletics")

	invited := o.do("user", "invite", "--team", "Riverside Athletics", "--email", "Ana@example.com", "--role", "admin")
	require.Regexp(t, `^https://dashboard\.example\.com/invitation/[A-Z2-7]{26}$`, invited["link"])
	again := o.do("user", "invite", "--team", team, "--email", "ana@example.com", "--role", "viewer")
	require.Equal(t, invited["user_id"], again["user_id"], "letter case does not matter")
	require.NotEqual(t, invited["link"], again["link"])
	users := o.data("user", "list")
	require.Len(t, users, 1)
	require.Equal(t, "Ana@example.com", users[0]["email"])
	require.Empty(t, users[0]["teams"], "an invitation is no membership")

	reset := o.do("user", "reset", "ana@example.com")
	require.Regexp(t, `^https://dashboard\.example\.com/invitation/`, reset["link"])
	disabled := o.do("user", "disable", "ana@example.com")
	require.NotNil(t, disabled["disabled_at"])
	require.Equal(t, disabled, o.do("user", "disable", "ana@example.com"))
	o.fails(cli.ExitFailure, "is disabled. Enable it first: roomsensor user enable ana@example.com", "user", "reset", "ana@example.com")
	o.fails(cli.ExitFailure, "is disabled", "user", "invite", "--team", team, "--email", "ana@example.com", "--role", "viewer")
	require.Nil(t, o.do("user", "enable", "ana@example.com")["disabled_at"])
}

func TestUsersRefuses(t *testing.T) {
	t.Parallel()
	o := newOperator(t)
	team := o.id("id", "team", "create", "--name", "Riverside Athletics")
	o.fails(cli.ExitFailure, "There is no person with the email address x@example.com", "user", "reset", "x@example.com")
	o.fails(cli.ExitFailure, "There is no person with the email address x@example.com", "user", "disable", "x@example.com")
	o.fails(cli.ExitFailure, "There is no team "+unknown, "user", "invite", "--team", unknown, "--email", "x@example.com", "--role", "viewer")
	require.Empty(t, o.data("user", "list"), "a refused invitation leaves no account")
	o.fails(cli.ExitUsage, "must be an address such as ana@example.com", "user", "invite", "--team", team, "--email", "Ana <ana@example.com>", "--role", "viewer")
	o.fails(cli.ExitUsage, "--role", "user", "invite", "--team", team, "--email", "x@example.com", "--role", "owner")
	o.fails(cli.ExitUsage, "--dashboard-url (DASHBOARD_URL) must be the address that people open", "user", "reset", "x@example.com", "--dashboard-url", "http://dashboard.example.com")
}
