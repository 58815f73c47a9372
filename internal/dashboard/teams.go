package dashboard

import (
	"context"

	"roomsensor/internal/roomsensor"
)

// teamsView is the data of the page on which a person chooses a team.
type teamsView struct {
	Teams []roomsensor.Membership
}

// start leads to the team of a person, or to the choice of one.
func (s *server) start(ctx context.Context, v *visit) error {
	teams, err := s.backend.Memberships(ctx, v.user.ID)
	if err != nil {
		return err
	}
	if len(teams) == 1 {
		return v.redirect("/teams/"+teams[0].Team.ID.String(), "")
	}
	return v.redirect("/teams", "")
}

func (s *server) listTeams(ctx context.Context, v *visit) error {
	teams, err := s.backend.Memberships(ctx, v.user.ID)
	if err != nil {
		return err
	}
	return v.render("teams", teamsView{teams})
}
