package admin

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"roomsensor/internal/mapping"
	"roomsensor/internal/process"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/source"
)

// NewSource is a new source with its first credential, which is shown only once.
type NewSource struct {
	SourceID string `json:"source_id"`
	Name     string `json:"name"`
	Format   string `json:"format"`
	URL      string `json:"url"`
	Key      string `json:"key"`
}

// Source is a source. Mapping has the members that replace those of the format.
type Source struct {
	SourceID   string  `json:"source_id"`
	TeamID     string  `json:"team_id"     table:"-"`
	Name       string  `json:"name"`
	Format     string  `json:"format"`
	Mapping    *string `json:"mapping"     table:"-"`
	CreatedAt  string  `json:"created_at"  table:"-"`
	DisabledAt *string `json:"disabled_at"`
}

// ListedSource is a source in the list of a team's sources, with what it received in the last 24 hours.
type ListedSource struct {
	Source
	LastReceivedAt *string `json:"last_received_at"`
	Messages       int64   `json:"messages"`
	Stored         int64   `json:"stored"`
	Rejected       int64   `json:"rejected"`
	Ignored        int64   `json:"ignored"`
}

// Format is a format of sources.
type Format struct {
	Format      string `json:"format"`
	Sampling    string `json:"sampling"`
	Description string `json:"description"`
}

// TestedMessage is what a worker would make of a message, and the paths of the message if a suggestion was asked for.
type TestedMessage struct {
	*source.Preview
	Paths     []Path              `json:"paths,omitempty"`
	Suggested map[string][]string `json:"suggested,omitempty"` // paths that fit each metric by name and range
}

// Path is a path of a message with its value.
type Path struct {
	Path  string `json:"path"`
	Value string `json:"value"`
}

// ViewSource returns a source for output.
func ViewSource(s *roomsensor.Source) Source {
	view := Source{
		SourceID: s.ID.String(), TeamID: s.TeamID.String(), Name: s.Name, Format: s.Format,
		CreatedAt: roomsensor.FormatTime(s.CreatedAt), DisabledAt: formatTime(s.DisabledAt),
	}
	if s.Mapping != "" {
		view.Mapping = &s.Mapping
	}
	return view
}

func viewListedSource(s *roomsensor.ListedSource) ListedSource {
	return ListedSource{
		Source: ViewSource(&s.Source), LastReceivedAt: formatTime(s.LastReceivedAt),
		Messages: s.Messages, Stored: s.Stored, Rejected: s.Rejected, Ignored: s.Ignored,
	}
}

// CreateSource creates a source with a credential. url returns the URL of a source.
func (o *Operator) CreateSource(
	ctx context.Context, s roomsensor.Source, url func(id string) string,
) (NewSource, error) {
	key, text := newKey(roomsensor.IngestKey, roomsensor.Key{TeamID: s.TeamID, Label: &s.Name})
	created, err := o.store.CreateSource(ctx, s, &key)
	if err != nil {
		return NewSource{}, o.explain(ctx, err)
	}
	id := created.ID.String()
	return NewSource{SourceID: id, Name: created.Name, Format: created.Format, URL: url(id), Key: text}, nil
}

// Sources lists the sources of a team by name.
func (o *Operator) Sources(ctx context.Context, teamID uuid.UUID) (List[ListedSource], error) {
	sources, err := o.store.TeamSources(ctx, teamID)
	return listOf(sources, viewListedSource), o.explain(ctx, err)
}

// FindSource returns the source with an id or a name. team is the id or the name of its team, or nil if it may belong
// to any; only with a team, a source is found by its name.
func (o *Operator) FindSource(ctx context.Context, team *string, idOrName string) (s roomsensor.Source, err error) {
	ofTeam, err := o.FindTeamIfNamed(ctx, team)
	if err != nil {
		return s, err
	}
	if id, ok := parseID(idOrName); ok {
		found, err := o.store.Sources(ctx, []uuid.UUID{id})
		s, known := found[id]
		if err == nil && (!known || ofTeam != nil && s.TeamID != *ofTeam) {
			err = &roomsensor.NotFoundError{Kind: roomsensor.KindSource, ID: idOrName}
		}
		return s, o.explain(ctx, err)
	}
	if ofTeam == nil {
		return s, process.Refusef("%q is not the id of a source. Give the id, or the name together with --team.", idOrName)
	}
	sources, err := o.store.TeamSources(ctx, *ofTeam)
	for i := range sources {
		if sources[i].Name == idOrName {
			return sources[i].Source, nil
		}
	}
	if err == nil {
		err = &roomsensor.NotFoundError{Kind: roomsensor.KindSource, ID: idOrName}
	}
	return s, o.explain(ctx, err)
}

// FindSourceIfNamed returns the id of an optional source, as FindSource finds it: nil without an id or a name. An id is
// not looked up, so that the rejects of a deleted source are found.
func (o *Operator) FindSourceIfNamed(ctx context.Context, team, idOrName *string) (*uuid.UUID, error) {
	if idOrName == nil {
		return nil, nil //nolint:nilnil // nil stands for any source.
	}
	if id, ok := parseID(*idOrName); ok {
		return &id, nil
	}
	s, err := o.FindSource(ctx, team, *idOrName)
	return &s.ID, err
}

// ChangeSource changes a source, whose mapping must be valid after the change.
func (o *Operator) ChangeSource(ctx context.Context, s *roomsensor.Source, c roomsensor.SourceChange) (Source, error) {
	changed, err := o.store.ChangeSource(ctx, s.TeamID, s.ID, c)
	if err != nil {
		return Source{}, o.explain(ctx, err)
	}
	return ViewSource(&changed), nil
}

// DeleteSource deletes a source. Its readings and rejects stay.
func (o *Operator) DeleteSource(ctx context.Context, s *roomsensor.Source) (Source, error) {
	return ViewSource(s), o.explain(ctx, o.store.DeleteSource(ctx, s.TeamID, s.ID))
}

// TestSource returns what a worker would make of a message that arrives now (A11.11).
func (o *Operator) TestSource(
	ctx context.Context, s *roomsensor.Source, text []byte, precision string, suggest bool,
) (tested TestedMessage, err error) {
	m, err := source.Compile(s.Format, s.Mapping)
	if err != nil {
		return tested, process.Refusef("The mapping of the source is not valid: %v", err)
	}
	arrival := roomsensor.Arrival{At: o.timestamp(), Team: &s.TeamID, Source: &s.ID, Precision: precision}
	if tested.Preview, err = source.NewPreview(ctx, o.store, m, text, &arrival); err != nil || !suggest {
		return tested, o.explain(ctx, err)
	}
	parsed, _ := mapping.ParsePrecision(precision) // The command checked it.
	suggestion := m.Suggest(mapping.Message{Text: text, ArrivedAt: arrival.At, Precision: parsed})
	for _, v := range suggestion.Values {
		tested.Paths = append(tested.Paths, Path(v))
	}
	tested.Suggested = map[string][]string{}
	for _, metric := range roomsensor.Metrics {
		tested.Suggested[metric.String()] = append([]string{}, suggestion.Metrics[metric]...)
	}
	return tested, nil
}

// Formats lists the formats of sources.
func Formats() List[Format] {
	formats := mapping.Formats()
	return listOf(formats, func(f *mapping.Format) Format { return Format{f.Name, f.Sampling, f.Description} })
}

// FormatText returns the mapping of a format as a JSON document.
func FormatText(name string) ([]byte, error) {
	f, ok := mapping.FormatNamed(name)
	if !ok {
		return nil, process.Refusef("There is no format %.100q. The formats are %s.", name, FormatNames())
	}
	return f.Text, nil
}

// FormatNames returns the names of all formats, separated by commas.
func FormatNames() string {
	formats := mapping.Formats()
	names := make([]string, len(formats))
	for i := range formats {
		names[i] = formats[i].Name
	}
	return strings.Join(names, ", ")
}

// CheckSource checks that a format exists and that the members of a mapping fit it. Its error is a sentence with the
// position of the mistake (A11.10).
func CheckSource(format, members string) error {
	_, err := source.Compile(format, members)
	if errors.Is(err, source.ErrFormat) {
		return fmt.Errorf("there is no format %.100q: the formats are %s", format, FormatNames())
	}
	return err
}
