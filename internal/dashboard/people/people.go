// Package people is the pages with which people sign in, join teams, change their account, and manage the members of a
// team.
package people

import (
	"context"

	"github.com/google/uuid"

	"roomsensor/internal/dashboard/page"
	"roomsensor/internal/fairshare"
	"roomsensor/internal/password"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/roomsensor/accounts"
)

// Backend has the people, their teams and their links.
type Backend interface {
	SignIn
	Links
	Account
	Members
	User(ctx context.Context, userID uuid.UUID) (accounts.User, error)
	Membership(ctx context.Context, teamID, userID uuid.UUID) (accounts.Membership, error)
	Memberships(ctx context.Context, userID uuid.UUID) ([]accounts.Membership, error)
}

// Pages are the pages of people.
type Pages struct {
	backend Backend
	url     string             // base of links to the dashboard
	refused password.List      // passwords that nobody may choose
	signIns *fairshare.Limiter // of the passwords that are checked, by network
}

// New returns the pages.
func New(backend Backend, url string, refused password.List) *Pages {
	return &Pages{backend, url, refused, newSignIns()}
}

// checkNew adds the error of a new password of a person. teams are the names of the person's teams.
func (p *Pages) checkNew(problems page.FormErrors, subject, secret string, user *accounts.User, teams ...string) {
	about := append([]string{user.Name}, teams...)
	problems.AddCheck("password", subject, roomsensor.CheckPassword(secret, user.Email, about...))
	if p.refused.Has(secret) {
		problems.Add("password", subject+" is in a list of passwords that attackers know. Choose another one.")
	}
}

// Start leads to the team of a person, to the one that the browser showed last, or to the choice of one.
func (p *Pages) Start(ctx context.Context, v *page.Visit) error {
	teams, err := p.backend.Memberships(ctx, v.User.ID)
	if err != nil {
		return err
	}
	for i := range teams {
		if id := teams[i].Team.ID; len(teams) == 1 || id == v.LastTeam() {
			return v.Redirect("/teams/"+id.String(), "")
		}
	}
	return v.Redirect("/teams", "")
}

// ListTeams shows the teams of a person.
func (p *Pages) ListTeams(ctx context.Context, v *page.Visit) error {
	teams, err := p.backend.Memberships(ctx, v.User.ID)
	if err != nil {
		return err
	}
	return v.Render("teams", teams)
}
