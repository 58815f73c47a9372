package abuse

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"roomsensor/internal/password"
	"roomsensor/internal/retry"
	"roomsensor/internal/roomsensor"
)

const (
	// teamPeople is the number of accounts of each team, all admins, who may do the most.
	teamPeople = 4
	// correctPassword is that of every account.
	correctPassword = "correct horse battery staple"
)

func insertPeople(ctx context.Context, conn *pgx.Conn, team uuid.UUID) ([]string, error) {
	// Its check is cheap. Attackers guess for accounts that do not exist, whose check has the full cost.
	hash, err := password.Cost{MemoryKiB: 8, Passes: 1, Threads: 1}.Hash(ctx, correctPassword)
	if err != nil {
		return nil, err
	}
	list := make([]string, teamPeople)
	for i := range list {
		list[i] = fmt.Sprintf("%d-%s@example.com", i, team)
		_, err := conn.Exec(ctx, `
			WITH person AS (
				INSERT INTO users (email, display_name, password_hash) VALUES ($1, 'Robin Vale', $2) RETURNING id
			)
			INSERT INTO memberships (team_id, user_id, role) SELECT $3, id, $4 FROM person`,
			list[i], hash, team, roomsensor.Admin.String())
		if err != nil {
			return nil, fmt.Errorf("inserting a person: %w", err)
		}
	}
	return list, nil
}

// newSignIn returns a request that signs a person in, from a random address of a private network.
func newSignIn(ctx context.Context, dashboard, email, secret string) (*http.Request, error) {
	form := strings.NewReader(url.Values{"email": {email}, "password": {secret}}.Encode())
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, dashboard+"/sign-in", form)
	if err != nil {
		return nil, err //nolint:wrapcheck // It is a constant.
	}
	random := func() byte { return byte(rand.N(256)) } //nolint:gosec // It is no secret.
	from := netip.AddrFrom4([4]byte{10, random(), random(), random()})
	request.Header.Set("X-Forwarded-For", from.String())
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return request, nil
}

// openSession signs a person in and returns the cookie of the session.
func openSession(ctx context.Context, c *http.Client, dashboard, email string) (*http.Cookie, error) {
	request, err := newSignIn(ctx, dashboard, email, correctPassword)
	if err != nil {
		return nil, err
	}
	response, err := c.Transport.RoundTrip(request) // It does not follow the redirect to the start page.
	if err != nil {
		return nil, err //nolint:wrapcheck // reason shortens it.
	}
	defer func() { _ = response.Body.Close() }()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return nil, err //nolint:wrapcheck // reason shortens it.
	}
	cookies := response.Cookies()
	if response.StatusCode != http.StatusSeeOther || len(cookies) == 0 {
		return nil, newError(response)
	}
	return cookies[0], nil
}

// openOverview opens the overview of the tenant.
func (c *tenant) openOverview(ctx context.Context, s *slice, _ int) {
	c.send(ctx, s, pages, "/teams/{team_id}", func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.dashboard.URL()+"/teams/"+c.team.id.String(), nil)
		if err != nil {
			return err //nolint:wrapcheck // It is a constant.
		}
		request.AddCookie(c.cookie)
		response, err := c.client.Do(request)
		if err != nil {
			return err //nolint:wrapcheck // reason shortens it.
		}
		defer func() { _ = response.Body.Close() }()
		if response.StatusCode != http.StatusOK {
			return newError(response)
		}
		_, err = io.Copy(io.Discard, response.Body)
		return err //nolint:wrapcheck // reason shortens it.
	})
}

// signIn signs a person of the tenant in. The check of a password is slow by design: its duration is not judged.
func (c *tenant) signIn(ctx context.Context, s *slice, _ int) {
	c.send(ctx, s, signIns, "/sign-in", func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, answerTimeout)
		defer cancel()
		_, err := openSession(ctx, c.client, c.dashboard.URL(), c.team.people[1])
		return err
	})
}

// guessPasswords sends attempts to sign in, each from another address and for another account, as a botnet does.
func guessPasswords(t *target) (func(context.Context, *attacker), error) {
	const guesses = 64
	return func(ctx context.Context, w *attacker) {
		repeat(ctx, guesses, time.Millisecond, func(ctx context.Context, _ int) {
			request, err := newSignIn(ctx, t.Dashboard, uuid.NewString()+"@example.com", "wrong")
			if err != nil {
				w.count("error")
				return
			}
			w.send(ctx, request, "", nil)
		})
	}, nil
}

// signIn signs all people of the attacker in and returns the cookies of their sessions, or nil.
func (w *attacker) signIn(ctx context.Context) []*http.Cookie {
	cookies := make([]*http.Cookie, len(w.target.People))
	for i, email := range w.target.People {
		var err error
		if cookies[i], err = openSession(ctx, w.client, w.target.Dashboard, email); err != nil {
			w.count("error")
			return nil
		}
	}
	return cookies
}

// openPages requests the pages that read the most, each of another kind, and opens more live overviews than may wait,
// each with a URL of 60 KB and again after streamsPause. They begin one after another: 1,500 requests at the same
// instant, again and again, would measure the processor that both sides share.
func openPages(t *target) (func(context.Context, *attacker), error) {
	const requests, streams, streamsPause = 64, 1500, 10 * time.Second
	const local = "2006-01-02T15:04"
	from, to := t.History.Add(-historyHours*time.Hour), t.History
	window := "from=" + roomsensor.FormatTime(from) + "&to=" + roomsensor.FormatTime(to)
	team := "/teams/" + t.Team.String()
	paths := []string{
		team, team + "/nights", team + "/assignments", team + "/devices/" + t.Devices[0].String() + "?range=90d",
		team + "/export?count=1&from=" + from.Format(local) + "&to=" + to.Format(local),
		team + "/export/readings.csv?" + window, team + "/rejects", team + "/audit",
	}
	search := strings.Repeat("x", 60_000)
	return func(ctx context.Context, w *attacker) {
		cookies := w.signIn(ctx)
		if cookies == nil {
			return
		}
		open := func(ctx context.Context, cookie *http.Cookie, path string) {
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, t.Dashboard+path, nil)
			if err != nil {
				w.count("error")
				return
			}
			request.AddCookie(cookie)
			w.send(ctx, request, "", nil)
		}
		var group sync.WaitGroup
		defer group.Wait()
		group.Go(func() {
			spread(ctx, streams, streamsPause, func(ctx context.Context, i int) {
				retry.Every(ctx, streamsPause, func(ctx context.Context) {
					open(ctx, cookies[i%len(cookies)], team+"/tiles?q="+search)
				})
			})
		})
		repeat(ctx, requests, time.Millisecond, func(ctx context.Context, i int) {
			open(ctx, cookies[i%len(cookies)], paths[i/len(cookies)%len(paths)])
		})
	}, nil
}
