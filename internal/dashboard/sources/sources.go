// Package sources is the pages of the sources of a team: what each received, how to connect its sender, and how its
// messages are read.
package sources

import (
	"cmp"
	"context"

	"github.com/google/uuid"

	"roomsensor/internal/dashboard/page"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/source"
)

// Backend has the sources of a team, and what a preview of a message needs.
type Backend interface {
	source.Tables
	page.Sources
	// NewestSourceMessage returns the newest message of a source; false before the first one.
	NewestSourceMessage(ctx context.Context, teamID, sourceID uuid.UUID) (roomsensor.SourceMessage, bool, error)
	// CreateSource stores a source with a key. Its errors are a SourceExistsError and a TooManySourcesError.
	CreateSource(ctx context.Context, s roomsensor.Source, key *roomsensor.Key) (roomsensor.Source, error)
	ChangeSource(
		ctx context.Context, teamID, sourceID uuid.UUID, change roomsensor.SourceChange,
	) (roomsensor.Source, error)
	DeleteSource(ctx context.Context, teamID, sourceID uuid.UUID) error
	TeamIngestKeys(ctx context.Context, teamID uuid.UUID) ([]roomsensor.Key, error)
	CountRejectsOfGroup(ctx context.Context, teamID uuid.UUID, p roomsensor.RejectGroupPage) (int64, error)
	page.Audit
}

// Pages are the pages of sources.
type Pages struct {
	backend Backend
	url     func(id string) string // of a source
	docs    string
}

// New returns the pages. url returns the URL to which the sender of a source posts, docs is that of the docs.
func New(backend Backend, url func(id string) string, docs string) *Pages {
	return &Pages{backend, url, docs}
}

// connection is how messages reach a source.
type connection struct {
	URL   string // to which the sender posts
	MQTT  bool   // roomsensor mqtt fetches the messages instead
	Guide string // URL of the page for the format
}

// guides are the pages of the docs for formats; sources is that for all others.
var guides = map[string]string{
	"airgradient": "airgradient", "chirpstack": "chirpstack", "homeassistant": "home-assistant", "influx": "telegraf",
	"notehub": "notehub", "shelly": mqttGuide, "tasmota": mqttGuide, "telegraf": "telegraf", "tts": "the-things-stack",
	"zigbee2mqtt": mqttGuide,
}

const mqttGuide = "mqtt"

func (p *Pages) connection(s *roomsensor.Source) connection {
	guide := cmp.Or(guides[s.Format], "sources")
	return connection{p.url(s.ID.String()), guide == mqttGuide, p.docs + "/guides/" + guide}
}

// List shows the sources of the team.
func (p *Pages) List(ctx context.Context, v *page.Visit) error {
	sources, err := p.backend.TeamSources(ctx, v.Team.ID)
	if err != nil {
		return err
	}
	return v.Render("sources", sources)
}

// find returns the source that the path names, if it belongs to the team.
func (p *Pages) find(ctx context.Context, v *page.Visit) (*roomsensor.ListedSource, error) {
	return v.FindSource(ctx, p.backend, v.Echo.Param("source_id"))
}

// ChangeState disables a source, or enables it again.
func (p *Pages) ChangeState(ctx context.Context, v *page.Visit) error {
	s, err := p.find(ctx, v)
	if err != nil {
		return err
	}
	disabled := v.Form("disabled") == "true"
	change := roomsensor.SourceChange{Disabled: &disabled}
	if _, err := p.backend.ChangeSource(ctx, v.Team.ID, s.ID, change); err != nil {
		return err
	}
	message := s.Name + " takes messages again."
	if disabled {
		message = s.Name + " is disabled. Its messages are refused everywhere within 5 seconds."
	}
	return v.Redirect(v.Path("sources", s.ID.String()), message)
}

// Delete deletes a source.
func (p *Pages) Delete(ctx context.Context, v *page.Visit) error {
	id, err := v.ID("source_id")
	if err != nil {
		return err
	}
	err = v.AcceptDeleted(ctx, p.backend, id, p.backend.DeleteSource(ctx, v.Team.ID, id))
	if err != nil {
		return err
	}
	return v.Redirect(v.Path("sources"), "The source is deleted. Its readings and rejects stay.")
}
