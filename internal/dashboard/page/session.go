package page

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/alexedwards/scs/v2"
	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/roomsensor/accounts"
)

const (
	// idleTimeout ends a session without requests: a working day, so that nobody signs in twice a day.
	idleTimeout = 12 * time.Hour
	// lifetime ends every session, so that a stolen cookie does not work for longer.
	lifetime = 30 * 24 * time.Hour
)

// The values of a session.
const (
	userKey    = "user"    // id of the person
	roundKey   = "round"   // signed_out_at of the person at sign-in: a later sign-out everywhere ends the session
	messageKey = "message" // shown on the next page, once
)

// sessions are the sessions of people. A session exists from sign-in to sign-out only.
type sessions struct {
	manager *scs.SessionManager
}

// newSessions configures the sessions. With TLS, the cookie's name has a prefix with which browsers accept it only from
// this host over TLS.
func newSessions(store scs.CtxStore, tls bool) *sessions {
	cookie := scs.SessionCookie{
		Name: "roomsensor", Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: tls, Persist: true,
	}
	if tls {
		cookie.Name = "__Host-" + cookie.Name
	}
	// scs.New would start a goroutine for a store in memory, which nothing stops.
	return &sessions{&scs.SessionManager{
		Store: store, Codec: codec{}, HashTokenInStore: true,
		IdleTimeout: idleTimeout, Lifetime: lifetime, Cookie: cookie,
	}}
}

// load reads the session of a request. It is stored, and its cookie sent, when the header of the response is written.
func (s *sessions) load(ctx context.Context, c echo.Context) (context.Context, error) {
	ctx, err := s.manager.Load(ctx, s.token(c.Request()))
	if err != nil {
		return nil, fmt.Errorf("reading a session: %w", err)
	}
	c.Response().Before(func() { s.store(ctx, c) })
	c.Response().Header().Add("Vary", "Cookie")
	return ctx, nil
}

// token returns the text of the session cookie, which may be anything, or "".
func (s *sessions) token(r *http.Request) string {
	cookie, err := r.Cookie(s.manager.Cookie.Name)
	if err != nil {
		return ""
	}
	return cookie.Value
}

// store stores a session that changed. On failure it stays as it was before, which may lose a message or minutes of the
// idle timeout; what must not be lost was stored by keep.
func (s *sessions) store(ctx context.Context, c echo.Context) {
	switch s.manager.Status(ctx) {
	case scs.Modified:
		token, expiry, err := s.manager.Commit(ctx)
		if err != nil {
			return
		}
		s.manager.WriteSessionCookie(ctx, c.Response(), token, expiry)
	case scs.Destroyed:
		s.manager.WriteSessionCookie(ctx, c.Response(), "", time.Time{})
	case scs.Unmodified:
	}
	c.Response().Header().Set("Cache-Control", "no-store") // The library adds a weaker one.
}

// begin signs a person in, with a new token, so that nobody who knew an older one shares the session.
func (s *sessions) begin(ctx context.Context, user *accounts.User) error {
	if err := s.manager.Clear(ctx); err != nil {
		return fmt.Errorf("clearing a session: %w", err)
	}
	if err := s.manager.RenewToken(ctx); err != nil {
		return fmt.Errorf("renewing a session: %w", err)
	}
	s.manager.Put(ctx, userKey, user.ID.String())
	s.manager.Put(ctx, roundKey, round(user))
	if _, _, err := s.manager.Commit(ctx); err != nil {
		return fmt.Errorf("storing a session: %w", err)
	}
	return nil
}

// end signs a person out of this session.
func (s *sessions) end(ctx context.Context) error {
	if err := s.manager.Destroy(ctx); err != nil {
		return fmt.Errorf("ending a session: %w", err)
	}
	return nil
}

// round identifies the sessions of a person that a sign-out everywhere ends.
func round(user *accounts.User) string {
	if user.SignedOutAt == nil {
		return ""
	}
	return user.SignedOutAt.Format(time.RFC3339Nano)
}

// currentUser returns the person of a session, or ErrSignedOut.
func (s *Site) currentUser(ctx context.Context) (accounts.User, error) {
	id, err := uuid.Parse(s.sessions.manager.GetString(ctx, userKey))
	if err != nil {
		return accounts.User{}, ErrSignedOut
	}
	user, err := s.backend.User(ctx, id)
	switch {
	case errors.Is(err, roomsensor.ErrNotFound):
		return accounts.User{}, ErrSignedOut
	case err != nil:
		return accounts.User{}, err
	case user.DisabledAt != nil || s.sessions.manager.GetString(ctx, roundKey) != round(&user):
		return accounts.User{}, ErrSignedOut
	}
	return user, nil
}

// Recheck finds out again who the person of a long request is, and reads the role and the settings of the team. The
// session is read again, because that of the request is as it was at its start. If it fails, the visit stays as it is.
func (v *Visit) Recheck() error {
	s := v.site
	ctx, cancel := context.WithTimeout(context.Background(), RequestTimeout)
	defer cancel()
	ctx, err := s.sessions.manager.Load(ctx, s.sessions.manager.Token(v.ctx))
	if err != nil {
		return fmt.Errorf("reading a session: %w", err)
	}
	user, err := s.currentUser(ctx)
	if err != nil {
		return err
	}
	m, err := s.backend.Membership(ctx, v.Team.ID, user.ID)
	if err != nil {
		return err
	}
	v.User, v.Team, v.Role = user, m.Team, m.Role
	return nil
}

// SignIn signs a person in with a new session. It does not change the User of the visit. The access log has the person.
func (v *Visit) SignIn(ctx context.Context, user *accounts.User) error {
	if err := v.site.sessions.begin(ctx, user); err != nil {
		return err
	}
	requestOf(v.Echo).entered = user.ID
	return nil
}

// SignOut ends the session of the visit.
func (v *Visit) SignOut(ctx context.Context) error { return v.site.sessions.end(ctx) }

// codec stores sessions as JSON. The default, gob, writes the values in random order, so that an unchanged session
// would be stored again with each request.
type codec struct{}

type sessionData struct {
	Deadline time.Time      `json:"deadline"`
	Values   map[string]any `json:"values"`
}

// Encode implements scs.Codec.
func (codec) Encode(deadline time.Time, values map[string]any) ([]byte, error) {
	data, err := json.Marshal(sessionData{deadline, values})
	if err != nil {
		return nil, fmt.Errorf("encoding a session: %w", err)
	}
	return data, nil
}

// Decode implements scs.Codec.
func (codec) Decode(data []byte) (time.Time, map[string]any, error) {
	var d sessionData
	if err := json.Unmarshal(data, &d); err != nil {
		return time.Time{}, nil, fmt.Errorf("decoding a session: %w", err)
	}
	if d.Values == nil {
		d.Values = map[string]any{}
	}
	return d.Deadline, d.Values, nil
}

// teamCookieAge is the time for which browsers remember the team, the longest that they accept.
const teamCookieAge = 400 * 24 * time.Hour

// rememberTeam makes the browser remember the team of a page, to which the start page leads a person of several teams.
func (s *sessions) rememberTeam(v *Visit) {
	if v.LastTeam() != v.Team.ID {
		v.Echo.SetCookie(&http.Cookie{ //nolint:gosec // Secure with TLS, as that of the session.
			Name: s.teamCookie(), Value: v.Team.ID.String(), Path: "/", MaxAge: int(teamCookieAge / time.Second),
			HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: s.manager.Cookie.Secure,
		})
	}
}

func (s *sessions) teamCookie() string { return s.manager.Cookie.Name + "-team" }

// LastTeam returns the team whose page this browser showed last; uuid.Nil if it knows none. It is no right to see it.
func (v *Visit) LastTeam() uuid.UUID {
	cookie, err := v.Echo.Cookie(v.site.sessions.teamCookie())
	if err != nil {
		return uuid.Nil
	}
	id, _ := uuid.Parse(cookie.Value)
	return id
}
