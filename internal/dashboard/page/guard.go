package page

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/netip"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"roomsensor/internal/fairshare"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/roomsensor/accounts"
)

const (
	// RequestTimeout is the deadline of every request except streams.
	RequestTimeout = 10 * time.Second
	// maxForm is the size of a posted form in bytes, maxPublicForm that of a form of somebody who may be anybody.
	maxForm, maxPublicForm = 64 << 10, 4 << 10
)

// ErrSignedOut means that a page needs a person and the request has no session.
var ErrSignedOut = errors.New("signed out")

// guard wraps a handler with the checks that its route needs: session, membership, role, and a form that can be read.
func (s *Site) guard(r Route) echo.HandlerFunc {
	return func(c echo.Context) error {
		ctx := c.Request().Context()
		if !r.Stream {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, RequestTimeout)
			defer cancel()
		}
		c.Request().Body = http.MaxBytesReader(c.Response(), c.Request().Body, r.maxBytes())
		visit, err := s.enter(c, r)
		if err != nil {
			return err
		}
		defer visit.Release()
		ctx, err = s.sessions.load(ctx, c)
		if err != nil {
			return err
		}
		v := &Visit{site: s, Echo: c, ctx: ctx, Now: s.now()}
		requestOf(c).visit = v
		if err := s.admit(ctx, v, r); err != nil {
			return err
		}
		if err := readForm(c.Request()); err != nil {
			return err
		}
		if v.User.ID != uuid.Nil {
			v.ctx = WithPerson(ctx, &v.User, r.right(v))
		}
		c.SetRequest(c.Request().WithContext(v.ctx))
		if r.OfTeam() {
			s.sessions.rememberTeam(v)
			held, err := s.turns.take(ctx, v.Team.ID, r.Stream)
			if err != nil {
				return err
			}
			defer held.Release()
		}
		if r.Stream {
			visit.Release() // It lasts for as long as its page is open; its handler limits how many there are.
		}
		return r.Handle(v.ctx, v)
	}
}

// maxBytes returns the largest body of a request.
func (r *Route) maxBytes() int64 {
	if r.Public {
		return maxPublicForm
	}
	return cmp.Or(r.MaxForm, maxForm)
}

// readForm parses a posted form. The service answers 400 or 413 if it cannot.
func readForm(r *http.Request) error {
	if r.Method != http.MethodPost {
		return nil
	}
	err := r.ParseForm()
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return errTooLarge
	}
	if err != nil {
		return ErrMalformed
	}
	return nil
}

// enter counts a request in progress, by the network of its client and, except on public pages, by its session.
func (s *Site) enter(c echo.Context, r Route) (*fairshare.Held, error) {
	address, _ := netip.ParseAddr(s.clients(c.Request())) // All unknown addresses are one network.
	network := accounts.Network(address)
	owner := fairshare.Owner{Team: uuid.NewSHA1(uuid.Nil, []byte(network)), Key: network}
	token := s.sessions.token(c.Request())
	if r.Public || token == "" {
		return s.strangers.Try(owner, 1)
	}
	owner.Key = token
	return s.visits.Try(owner, 1)
}

// WithPerson returns a context whose changes are recorded as changes of a person, and need a right; nil for none.
func WithPerson(ctx context.Context, user *accounts.User, right *roomsensor.TeamRight) context.Context {
	return roomsensor.WithActor(ctx, roomsensor.Actor{
		Kind: roomsensor.ActorPerson, Name: user.Email, UserID: &user.ID, Right: right,
	})
}

// admit finds out who the person is, and checks what the route needs.
func (s *Site) admit(ctx context.Context, v *Visit, r Route) error {
	var err error
	if v.User, err = s.currentUser(ctx); err != nil && (!r.Public || !errors.Is(err, ErrSignedOut)) {
		return err
	}
	if !r.OfTeam() {
		return nil
	}
	teamID, err := v.ID("team_id")
	if err != nil {
		return err
	}
	m, err := s.backend.Membership(ctx, teamID, v.User.ID)
	if err != nil {
		return err
	}
	v.Team, v.Role = m.Team, m.Role
	if v.Role < r.Role {
		return roomsensor.RoleNeeded(r.Role)
	}
	return nil
}
