package sources

import (
	"context"
	"slices"
	"strings"
	"unicode/utf8"

	"roomsensor/internal/dashboard/page"
	"roomsensor/internal/mapping"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/source"
)

const (
	// MaxMappingForm is the size of the form with a mapping, which has at most 64 KiB, in bytes.
	MaxMappingForm = 256 << 10
	// maxShownMessage is how many bytes of the newest message the page shows.
	maxShownMessage = 16 << 10
	// maxShownRows bounds the readings and the rejects of a preview on the page.
	maxShownRows = 50
)

// view is the data of the page of a source.
type view struct {
	roomsensor.ListedSource
	connection

	Mapping string // as entered, or as stored
	Changed bool   // the mapping is not stored yet
	Text    string // of the format
	Problem string // what is wrong with the mapping
	Rejects int64  // that a replay may store
	Newest  *newest
}

// newest is the newest message of a source, and what becomes of it with the mapping of the view.
type newest struct {
	roomsensor.SourceMessage
	Shown   string // the beginning of the text
	Cut     bool
	Paths   []pathRow
	Preview *source.Preview // nil if the mapping is not valid
	More    int             // readings that the page does not show
}

// pathRow is a value of a message, and the metrics that its path fits.
type pathRow struct {
	mapping.PathValue

	Fits []roomsensor.Metric
}

// Show shows a source: how to connect its sender, its newest message, and its mapping.
func (p *Pages) Show(ctx context.Context, v *page.Visit) error {
	s, err := p.find(ctx, v)
	if err != nil {
		return err
	}
	return p.render(ctx, v, view{ListedSource: *s, Mapping: s.Mapping})
}

// ChangeMapping saves a mapping, shows what it makes of the newest message, or reads a metric from another path: by the
// button of the form.
func (p *Pages) ChangeMapping(ctx context.Context, v *page.Visit) error {
	s, err := p.find(ctx, v)
	if err != nil {
		return err
	}
	shown := view{ListedSource: *s, Mapping: v.Form("mapping"), Changed: true}
	if name, path, ok := strings.Cut(v.Form("use"), "="); ok {
		metrics, err := roomsensor.ParseMetrics(&name)
		if err != nil || len(metrics) != 1 {
			return page.ErrMalformed
		}
		if changed, err := source.ReadFrom(s.Format, shown.Mapping, metrics[0], path); err == nil {
			shown.Mapping = changed
		}
	}
	if v.Form("save") == "" {
		return p.render(ctx, v, shown)
	}
	if _, err := source.Compile(s.Format, shown.Mapping); err != nil {
		return p.render(ctx, v, shown)
	}
	change := roomsensor.SourceChange{Mapping: &shown.Mapping}
	if _, err := p.backend.ChangeSource(ctx, v.Team.ID, s.ID, change); err != nil {
		return err
	}
	return v.Redirect(v.Path("sources", s.ID.String()), "The mapping is saved. What arrives now is read with it.")
}

// render shows the page of a source with the mapping of the view.
func (p *Pages) render(ctx context.Context, v *page.Visit, shown view) (err error) {
	shown.connection = p.connection(&shown.Source)
	if f, ok := mapping.FormatNamed(shown.Format); ok {
		shown.Text = string(f.Text)
	}
	m, invalid := source.Compile(shown.Format, shown.Mapping)
	if invalid != nil {
		shown.Problem = invalid.Error()
	}
	shown.Rejects, err = p.backend.CountRejectsOfGroup(ctx, v.Team.ID, roomsensor.RejectGroupPage{
		Reasons: roomsensor.ReplayableReasons(), SourceID: &shown.ID,
	})
	if err != nil {
		return err
	}
	if shown.Newest, err = p.readNewest(ctx, v, &shown, m); err != nil {
		return err
	}
	if invalid != nil && shown.Changed {
		return v.Invalid("source", shown)
	}
	return v.Render("source", shown)
}

// readNewest reads the newest message of a source with a mapping, which is nil if it is not valid. It returns nil
// before the first message.
func (p *Pages) readNewest(ctx context.Context, v *page.Visit, shown *view, m *mapping.Mapping) (*newest, error) {
	message, ok, err := p.backend.NewestSourceMessage(ctx, v.Team.ID, shown.ID)
	if err != nil || !ok {
		return nil, err
	}
	n := &newest{SourceMessage: message}
	beginning := message.Text[:min(len(message.Text), maxShownMessage)]
	n.Shown, n.Cut = strings.ToValidUTF8(string(beginning), string(utf8.RuneError)), len(beginning) < len(message.Text)
	paths := m
	if f, ok := mapping.FormatNamed(shown.Format); paths == nil && ok {
		paths = f.Mapping
	}
	if paths == nil || message.Text == nil {
		return n, nil
	}
	precision, _ := mapping.ParsePrecision(message.Precision) // The receiver checked it.
	suggestion := paths.Suggest(mapping.Message{Text: message.Text, ArrivedAt: message.ReceivedAt, Precision: precision})
	for _, value := range suggestion.Values {
		row := pathRow{PathValue: value}
		for _, metric := range roomsensor.Metrics {
			if slices.Contains(suggestion.Metrics[metric], value.Path) {
				row.Fits = append(row.Fits, metric)
			}
		}
		n.Paths = append(n.Paths, row)
	}
	if m == nil {
		return n, nil
	}
	n.Preview, err = source.NewPreview(ctx, p.backend, m, message.Text, &roomsensor.Arrival{
		At: message.ReceivedAt, Team: &v.Team.ID, Source: &shown.ID, Precision: message.Precision,
	})
	if err == nil {
		n.More = max(0, len(n.Preview.Readings)-maxShownRows)
		n.Preview.Readings = n.Preview.Readings[:len(n.Preview.Readings)-n.More]
		n.Preview.Rejects = n.Preview.Rejects[:min(len(n.Preview.Rejects), maxShownRows)]
	}
	return n, err
}
