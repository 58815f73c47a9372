package sources

import (
	"context"
	"errors"

	"roomsensor/internal/dashboard/page"
	"roomsensor/internal/mapping"
	"roomsensor/internal/roomsensor"
)

// form is the form for a new source, as it was entered.
type form struct {
	Name, Format string
	Formats      []mapping.Format
	Errors       page.FormErrors
}

// ShowForm shows the form for a new source.
func (*Pages) ShowForm(_ context.Context, v *page.Visit) error {
	return v.Render("source-new", form{Formats: mapping.Formats()})
}

// newSourceView is the only page that shows the credential. It is the response to a form, and never a page with an
// address.
type newSourceView struct {
	roomsensor.ListedSource
	connection

	Key string
}

// Create creates a source, and shows how to connect its sender.
func (p *Pages) Create(ctx context.Context, v *page.Visit) error {
	f := form{Name: v.Form("name"), Format: v.Form("format"), Formats: mapping.Formats(), Errors: page.FormErrors{}}
	if roomsensor.CheckName(f.Name) != nil {
		f.Errors.Add("name", "Enter what sends here, in 1 to 200 characters, such as the name of a platform.")
	}
	if _, known := mapping.FormatNamed(f.Format); !known {
		f.Errors.Add("format", "Choose what sends here.")
	}
	keys, err := p.backend.TeamIngestKeys(ctx, v.Team.ID)
	if err != nil {
		return err
	}
	f.Errors.AddRule(roomsensor.CheckNewKey("name", keys, v.Now))
	if len(f.Errors) > 0 {
		return v.Invalid("source-new", f)
	}
	key := roomsensor.Key{TeamID: v.Team.ID, Label: &f.Name}
	var view newSourceView
	key.ID, view.Key, key.SecretSHA256 = roomsensor.GenerateKey(roomsensor.IngestKey)
	view.Source, err = p.backend.CreateSource(ctx, roomsensor.Source{
		TeamID: v.Team.ID, Name: f.Name, Format: f.Format,
	}, &key)
	if _, taken := errors.AsType[*roomsensor.SourceExistsError](err); taken {
		f.Errors.Add("name", "Your team has a source with this name. Choose another name, or open that source.")
		return v.Invalid("source-new", f)
	}
	if _, tooMany := errors.AsType[*roomsensor.TooManySourcesError](err); tooMany {
		f.Errors.Add("name", "Your team has 100 sources, which is the limit. Delete one that is not used.")
		return v.Invalid("source-new", f)
	}
	if err != nil {
		return err
	}
	view.connection = p.connection(&view.Source)
	return v.Render("source-created", view)
}
