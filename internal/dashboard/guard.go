package dashboard

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"roomsensor/internal/roomsensor"
)

const (
	// requestTimeout is the deadline of every request except streams.
	requestTimeout = 10 * time.Second
	// maxForm is the size of a posted form in bytes.
	maxForm = 64 << 10
)

// errSignedOut means that a page needs a person and the request has no session.
var errSignedOut = errors.New("signed out")

// guard wraps a handler with the checks that its route needs: session, membership, role.
func (s *server) guard(r route) echo.HandlerFunc {
	return func(c echo.Context) error {
		ctx := c.Request().Context()
		if !r.stream {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, requestTimeout)
			defer cancel()
		}
		c.Request().Body = http.MaxBytesReader(c.Response(), c.Request().Body, maxForm)
		ctx, err := s.sessions.load(ctx, c)
		if err != nil {
			return err
		}
		v := &visit{server: s, echo: c, ctx: ctx, now: s.now(), stream: r.stream}
		requestOf(c).visit = v
		if err := s.admit(ctx, v, r); err != nil {
			return err
		}
		if v.user.ID != uuid.Nil {
			v.ctx = withPerson(ctx, &v.user)
		}
		c.SetRequest(c.Request().WithContext(v.ctx))
		if r.ofTeam() {
			release, err := s.turns.take(ctx, v.team.ID, r.stream)
			if err != nil {
				return err
			}
			defer release()
		}
		return r.handle(v.ctx, v)
	}
}

// withPerson returns a context whose changes are recorded as changes of a person.
func withPerson(ctx context.Context, user *roomsensor.User) context.Context {
	return roomsensor.WithActor(ctx, roomsensor.Actor{
		Kind: roomsensor.ActorPerson, Name: user.Email, UserID: &user.ID,
	})
}

// admit finds out who the person is, and checks what the route needs.
func (s *server) admit(ctx context.Context, v *visit, r route) error {
	var err error
	if v.user, err = s.currentUser(ctx); err != nil && (!r.public || !errors.Is(err, errSignedOut)) {
		return err
	}
	if !r.ofTeam() {
		return nil
	}
	teamID, err := v.id("team_id")
	if err != nil {
		return err
	}
	m, err := s.backend.Membership(ctx, teamID, v.user.ID)
	if err != nil {
		return err
	}
	v.team, v.role = m.Team, m.Role
	if v.role < r.role {
		return errRole(r.role)
	}
	return nil
}

// errRole refuses a person whose role in the team is too small.
func errRole(needed roomsensor.Role) error {
	return roomsensor.NewError(roomsensor.CodeInsufficientScope, "",
		"This needs the role "+needed.String()+" in the team. Ask an admin of the team.")
}
