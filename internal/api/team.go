package api

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"roomsensor/internal/httpedge"
	"roomsensor/internal/roomsensor"
)

// teamBody is the response of GET /team (spec 4).
type teamBody struct {
	Team   teamPart `json:"team"`
	APIKey keyPart  `json:"api_key"`
}

type teamPart struct {
	ID   uuid.UUID `json:"id"`
	Name string    `json:"name"`
}

type keyPart struct {
	KeyID  string             `json:"key_id"`
	Scopes []roomsensor.Scope `json:"scopes"`
}

// getTeam handles GET /team.
func (s *server) getTeam(ctx context.Context, c *call) error {
	if _, err := c.query(); err != nil {
		return err
	}
	team, err := s.backend.Team(ctx, c.key.TeamID)
	if err != nil {
		return fmt.Errorf("finding the team of a key: %w", err)
	}
	body, err := httpedge.EncodeJSON(teamBody{
		Team:   teamPart{team.ID, team.Name},
		APIKey: keyPart{c.key.ID, []roomsensor.Scope{c.key.Scope}},
	})
	if err != nil {
		return err
	}
	return c.writeObject(body)
}
