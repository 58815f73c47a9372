package people_test

import (
	"context"
	"crypto/sha256"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/roomsensor/accounts"
)

// person adds a person with a password to some teams.
func (f *fixture) person(t *testing.T, email string, role roomsensor.Role, teams ...uuid.UUID) uuid.UUID {
	t.Helper()
	var id uuid.UUID
	require.NoError(t, f.SQL.QueryRow(t.Context(),
		`INSERT INTO users (email, password_hash) VALUES ($1, 'x') RETURNING id`, email).Scan(&id))
	for _, team := range teams {
		f.join(t, id, team, role)
	}
	return id
}

func (f *fixture) join(t *testing.T, user, team uuid.UUID, role roomsensor.Role) {
	t.Helper()
	f.Exec(t, `INSERT INTO memberships (user_id, team_id, role) VALUES ($1, $2, $3)`, user, team, role.String())
}

func (f *fixture) team(t *testing.T) (id uuid.UUID) {
	t.Helper()
	require.NoError(t, f.SQL.QueryRow(t.Context(), `INSERT INTO teams (name) VALUES ('Other') RETURNING id`).Scan(&id))
	return id
}

// as returns a context in which a person acts for the team with the right of an admin.
func (f *fixture) as(t *testing.T, user uuid.UUID) context.Context {
	t.Helper()
	return roomsensor.WithActor(t.Context(), roomsensor.Actor{
		Kind: roomsensor.ActorPerson, Name: "admin@example.com", UserID: &user,
		Right: &roomsensor.TeamRight{TeamID: f.TeamID, Role: roomsensor.Admin},
	})
}

func newLink(token string) accounts.NewLink {
	return accounts.NewLink{TokenSHA256: sha256.Sum256([]byte(token)), ExpiresAt: time.Now().Add(time.Hour)}
}

// linkCase has an admin of a team who made two links, an invitation for a guest and a reset for a member, and an operator
// who made a reset for the same member.
type linkCase struct {
	*fixture

	t                    *testing.T
	admin, member, guest uuid.UUID
}

func newLinkCase(t *testing.T) *linkCase {
	t.Helper()
	c := &linkCase{fixture: setup(t), t: t}
	c.admin = c.person(t, "admin@example.com", roomsensor.Admin, c.TeamID)
	c.person(t, "second@example.com", roomsensor.Admin, c.TeamID)
	c.member = c.person(t, "member@example.com", roomsensor.Viewer, c.TeamID)
	c.guest = c.person(t, "guest@example.com", roomsensor.Viewer)
	_, err := c.Invite(c.as(t, c.admin), c.TeamID, "guest@example.com", roomsensor.Admin, newLink("invitation"))
	require.NoError(t, err)
	require.NoError(t, c.ResetPassword(t.Context(), c.member, newLink("operator")))
	require.NoError(t, c.ResetMember(c.as(t, c.admin), c.TeamID, c.member, newLink("reset")))
	return c
}

// usable returns the links that work: their pages, the list of the admins, and their use must agree.
func (c *linkCase) usable(t *testing.T) (tokens []string) {
	t.Helper()
	listed, err := c.Links(t.Context(), c.TeamID)
	require.NoError(t, err)
	ofTeam := 0
	for _, token := range []string{"invitation", "reset", "operator"} {
		_, shown := c.SignInLink(t.Context(), token)
		var used error
		if token == "invitation" {
			used = c.AcceptInvitation(t.Context(), token, c.guest, "", "")
		} else {
			_, used = c.UseReset(t.Context(), token, "hash")
		}
		require.Equal(t, shown == nil, used == nil, "%s: %v, %v", token, shown, used)
		if used != nil {
			require.ErrorIs(t, used, roomsensor.ErrNotFound, token)
			continue
		}
		tokens = append(tokens, token)
		if token != "operator" {
			ofTeam++
		}
	}
	require.Len(t, listed, ofTeam)
	return tokens
}

// TestLinkRights changes what made a link legal, between the time it is made and the time it is used.
func TestLinkRights(t *testing.T) {
	t.Parallel()
	all := []string{"invitation", "reset", "operator"}
	for name, test := range map[string]struct {
		change func(c *linkCase) error
		want   []string
	}{
		"nothing": {func(*linkCase) error { return nil }, all},
		"the maker is removed": {func(c *linkCase) error {
			return c.RemoveMember(c.t.Context(), c.TeamID, c.admin)
		}, []string{"operator"}},
		"the maker becomes an editor": {func(c *linkCase) error {
			return c.SetRole(c.t.Context(), c.TeamID, c.admin, roomsensor.Editor)
		}, []string{"operator"}},
		"the maker is disabled": {func(c *linkCase) error {
			return c.DisableUser(c.t.Context(), c.admin)
		}, []string{"operator"}},
		"the maker is deleted": {func(c *linkCase) error {
			_, err := c.DeleteUser(c.t.Context(), c.admin, "")
			return err
		}, []string{"operator"}},
		"the member joins another team": {func(c *linkCase) error {
			c.join(c.t, c.member, c.team(c.t), roomsensor.Viewer)
			return nil
		}, []string{"invitation", "operator"}},
		"the member is removed": {func(c *linkCase) error {
			return c.RemoveMember(c.t.Context(), c.TeamID, c.member)
		}, []string{"invitation", "operator"}},
		"the member moves to another team": {func(c *linkCase) error {
			c.join(c.t, c.member, c.team(c.t), roomsensor.Viewer)
			return c.RemoveMember(c.t.Context(), c.TeamID, c.member)
		}, []string{"invitation", "operator"}},
		"the member is disabled": {func(c *linkCase) error {
			return c.DisableUser(c.t.Context(), c.member)
		}, []string{"invitation"}},
		"an admin revokes both links": {func(c *linkCase) error {
			require.NoError(c.t, c.RevokeLinks(c.as(c.t, c.admin), c.TeamID, c.member))
			return c.RevokeLinks(c.as(c.t, c.admin), c.TeamID, c.guest)
		}, []string{"operator"}},
		"the operator makes another link": {func(c *linkCase) error {
			return c.ResetPassword(c.t.Context(), c.member, newLink("other"))
		}, []string{"invitation"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newLinkCase(t)
			require.NoError(t, test.change(c))
			require.Equal(t, test.want, c.usable(t))
		})
	}
}

// TestRightOfChange runs changes of a person whose role became smaller, or who was removed, after the request began.
func TestRightOfChange(t *testing.T) {
	t.Parallel()
	f := setup(t)
	key := roomsensor.Key{ID: "k", TeamID: f.TeamID, Scope: roomsensor.ScopeRead}
	var reject uuid.UUID
	require.NoError(t, f.SQL.QueryRow(t.Context(), `INSERT INTO rejected_uploads
		(received_at, stream_sequence, reason, detail, team_id, payload) VALUES (now(), 1, 'unknown_unit', 'x', $1, 'x')
		RETURNING id`, f.TeamID).Scan(&reject))
	user := f.person(t, "member@example.com", roomsensor.Editor, f.TeamID)
	f.person(t, "other@example.com", roomsensor.Admin, f.TeamID)
	changes := map[string]func(ctx context.Context) error{
		"API key": func(ctx context.Context) error { _, err := f.CreateAPIKey(ctx, key); return err },
		"upload credential": func(ctx context.Context) error {
			_, err := f.CreateIngestKey(ctx, key)
			return err
		},
		"name of a device": func(ctx context.Context) error {
			_, err := f.UpdateDevice(ctx, f.TeamID, f.DeviceID, rename("x"))
			return err
		},
		"unit": func(ctx context.Context) error {
			_, err := f.ReplaceHardware(ctx, f.TeamID, f.DeviceID, "dev:9", time.Now())
			return err
		},
		"assignment": func(ctx context.Context) error {
			_, err := f.ChangeAssignments(ctx, f.TeamID, roomsensor.StartAssignment(roomsensor.Assignment{
				DeviceID: f.DeviceID, Type: roomsensor.Place, Label: "x", HomeOrTravel: roomsensor.Home, StartedAt: time.Now(),
			}), nil)
			return err
		},
		"settings": func(ctx context.Context) error {
			_, err := f.UpdateTeamSettings(ctx, f.TeamID, func(s *accounts.TeamSettings) error { s.Night.Start++; return nil })
			return err
		},
		"invitation": func(ctx context.Context) error {
			_, err := f.Invite(ctx, f.TeamID, "x@example.com", roomsensor.Viewer, newLink("x"))
			return err
		},
		"reset": func(ctx context.Context) error { return f.ResetMember(ctx, f.TeamID, user, newLink("y")) },
		"role":  func(ctx context.Context) error { return f.SetRole(ctx, f.TeamID, user, roomsensor.Admin) },
		"note": func(ctx context.Context) error {
			return f.AddNote(ctx, f.TeamID, &roomsensor.Note{DeviceID: f.DeviceID, At: time.Now(), Text: "x"})
		},
		"shared link": func(ctx context.Context) error {
			return f.Share(ctx, f.TeamID, accounts.Shared{DeviceIDs: []uuid.UUID{f.DeviceID}}, newLink("z"))
		},
		"retirement": func(ctx context.Context) error {
			_, err := f.RetireDevice(ctx, f.TeamID, f.DeviceID, time.Now())
			return err
		},
		"replay": func(ctx context.Context) error {
			return f.WriteReplay(ctx, reject, roomsensor.Batch{})
		},
	}
	before := len(f.audit(t, roomsensor.AuditQuery{}))
	for name, change := range changes {
		require.ErrorContains(t, change(f.as(t, user)), "This needs the role admin in the team.", name)
	}
	require.NoError(t, f.RemoveMember(t.Context(), f.TeamID, user))
	for name, change := range changes {
		require.ErrorIs(t, change(f.as(t, user)), roomsensor.ErrNotFound, name)
	}
	require.Len(t, f.audit(t, roomsensor.AuditQuery{}), before+1, "only the removal")
}

// TestForgetInvited checks that a person who was only invited is forgotten with the last link, and nobody else.
func TestForgetInvited(t *testing.T) {
	t.Parallel()
	f := setup(t)
	other := f.team(t)
	f.person(t, "member@example.com", roomsensor.Viewer)
	for _, email := range []string{"guest@example.com", "member@example.com"} {
		for _, team := range []uuid.UUID{f.TeamID, other} {
			_, err := f.Invite(t.Context(), team, email, roomsensor.Viewer, newLink(email+team.String()))
			require.NoError(t, err)
		}
	}
	revoke := func(email string, team uuid.UUID) {
		user, err := f.UserByEmail(t.Context(), email)
		require.NoError(t, err)
		require.NoError(t, f.RevokeLinks(t.Context(), team, user.ID))
	}
	revoke("guest@example.com", f.TeamID)
	revoke("member@example.com", f.TeamID)
	revoke("member@example.com", other)
	_, err := f.UserByEmail(t.Context(), "member@example.com")
	require.NoError(t, err)
	revoke("guest@example.com", other)
	_, err = f.UserByEmail(t.Context(), "guest@example.com")
	require.ErrorIs(t, err, roomsensor.ErrNotFound)
	disabled, err := f.Invite(t.Context(), other, "disabled@example.com", roomsensor.Viewer, newLink("disabled"))
	require.NoError(t, err)
	require.NoError(t, f.DisableUser(t.Context(), disabled.ID))
	_, err = f.User(t.Context(), disabled.ID)
	require.NoError(t, err)
}

// TestMakerOfKeys checks that the list of keys marks those of a person who left.
func TestMakerOfKeys(t *testing.T) {
	t.Parallel()
	f := setup(t)
	admin := f.person(t, "admin@example.com", roomsensor.Admin, f.TeamID)
	f.person(t, "second@example.com", roomsensor.Admin, f.TeamID)
	key := func(id string) roomsensor.Key {
		return roomsensor.Key{ID: id, TeamID: f.TeamID, Scope: roomsensor.ScopeRead}
	}
	_, err := f.CreateAPIKey(f.as(t, admin), key("a"))
	require.NoError(t, err)
	_, _, err = f.RotateAPIKey(f.as(t, admin), f.TeamID, "a", key("b"), 0)
	require.NoError(t, err)
	_, err = f.CreateAPIKey(t.Context(), key("c"))
	require.NoError(t, err)
	_, err = f.CreateIngestKey(f.as(t, admin), key("d"))
	require.NoError(t, err)
	check := func(left bool) {
		t.Helper()
		keys, err := f.APIKeys(t.Context(), f.TeamID)
		require.NoError(t, err)
		upload, err := f.TeamIngestKeys(t.Context(), f.TeamID)
		require.NoError(t, err)
		for _, k := range append(keys, upload...) {
			byOperator := k.ID == "c"
			require.Equal(t, byOperator, k.MadeBy == "", k.ID)
			require.Equal(t, left && !byOperator, k.MakerLeft, k.ID)
		}
	}
	check(false)
	require.NoError(t, f.RemoveMember(t.Context(), f.TeamID, admin))
	check(true)
}
