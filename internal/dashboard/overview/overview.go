// Package overview is the page with a tile for each device of a team, and the streams that keep its tiles up to date.
package overview

import (
	"cmp"
	"context"
	"html/template"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"roomsensor/internal/dashboard/page"
	"roomsensor/internal/wording"
)

const (
	// pageTiles is how many tiles a page has.
	pageTiles = 1000
	// maxTagOptions is how many tags people can choose from.
	maxTagOptions = 200
	// maxSearch is the longest search, in characters.
	maxSearch = 200
)

// Config is the configuration of the pages.
type Config struct {
	PublicURL  string // base URL of the API
	Now        func() time.Time
	Log        zerolog.Logger
	Metrics    prometheus.Registerer // nil means that the metrics are not registered
	CheckEvery time.Duration         // how often a stream checks its person; 0 means checkInterval
}

// Pages are the overview of a team, and the streams that keep it up to date.
type Pages struct {
	overviews *overviews
	live      *live
	publicURL string
	now       func() time.Time
}

// New returns the pages. Stop ends their streams.
func New(cfg Config, backend Backend) *Pages {
	p := &Pages{overviews: newOverviews(backend, cfg.Now, cfg.Log), publicURL: cfg.PublicURL, now: cfg.Now}
	p.live = newLive(p.overviews, cmp.Or(cfg.CheckEvery, checkInterval))
	p.live.register(cfg.Metrics)
	return p
}

// Stop ends all streams.
func (p *Pages) Stop() { p.live.stop() }

// overviewView is the data of web/pages/overview.html.
type overviewView struct {
	Search, Tag, Problem string
	Unit                 string // the search if it is a hardware id; otherwise empty
	Show, GroupBy        string
	Table                bool // whether the tiles are rows
	Headline, Summary    string
	Night                string // what last night was like
	Filtered             bool
	Tags                 []tagOption
	TagKeys              []string
	Options              []showOption
	Groups               []groupView
	Page, Pages          int
	Devices              int // of the team
	Partial              bool
	Silent               bool // no device has ever sent an upload
	Awaits               bool // the sparklines follow
	MadeAt               time.Time
	MadeClock            string // its time of day in the zone of the team
	MadeStamp            string // for scripts
	Zone                 string // name of the zone
	Version              string
	Stream               string // path of the stream, with the filter
	Docs                 string // base of the documentation
}

// groupView is a group of tiles.
type groupView struct {
	Name  string
	Tiles []template.HTML
}

// tagOption is a tag to choose.
type tagOption struct{ Value, Text string }

// Previous and Next are the numbers of other pages.
func (w overviewView) Previous() int { return w.Page - 1 }

// Next is the number of the next page.
func (w overviewView) Next() int { return w.Page + 1 }

// Show handles the page with a tile per device.
func (p *Pages) Show(ctx context.Context, v *page.Visit) error {
	w, err := p.overviews.get(ctx, v.Team.ID)
	if err != nil {
		return err
	}
	query := v.Echo.QueryParams()
	f, problem := readFilter(query)
	selected, style := w.choose(&f, &v.Team, v.Now), tileStyle(v)
	view := overviewView{
		Search: query.Get("q"), Unit: wording.UnitOf(query.Get("q")), Tag: f.tag, Problem: problem,
		Show: f.show, Options: showOptions, GroupBy: f.groupBy, TagKeys: w.tagKeys(), Table: query.Get("view") == "table",
		Headline: selected.headline(len(w.tiles)), Summary: selected.summary(len(w.tiles)), Night: w.night,
		Tags: w.tagOptions(f.tag), Filtered: f.search != "" || f.tag != "" || f.show != "",
		Page: f.page + 1, Pages: (selected.total + pageTiles - 1) / pageTiles,
		Devices: len(w.tiles), Partial: w.partial, Silent: !slices.ContainsFunc(w.tiles, hasReported),
		Awaits: w.awaits && w.linesAt.IsZero(), MadeAt: w.at,
		Version: w.token(style), Stream: v.Path("tiles"), Docs: p.publicURL + "/docs",
	}
	view.MadeClock, view.MadeStamp = v.Time(w.at, time.TimeOnly), w.at.UTC().Format(time.RFC3339Nano)
	view.Zone = v.Zone().String()
	if text := v.Echo.Request().URL.RawQuery; text != "" {
		view.Stream += "?" + text
	}
	for i := range selected.rooms {
		r := &selected.rooms[i]
		html, err := r.render(v, style)
		if err != nil {
			return err
		}
		if n := len(view.Groups); n == 0 || view.Groups[n-1].Name != r.group {
			view.Groups = append(view.Groups, groupView{Name: r.group})
		}
		group := &view.Groups[len(view.Groups)-1]
		group.Tiles = append(group.Tiles, html)
	}
	return v.Render("overview", view)
}

// ShowWall shows devices as they are now, in big numbers, to somebody who has a link to them.
func (p *Pages) ShowWall(ctx context.Context, v *page.Visit, deviceIDs []uuid.UUID) error {
	w, err := p.overviews.get(ctx, v.Team.ID)
	if err != nil {
		return err
	}
	var view struct{ Rooms []tileView }
	for _, id := range deviceIDs {
		if t := w.byID[id]; t != nil {
			view.Rooms = append(view.Rooms, t.view(&v.Team, v.Now))
		}
	}
	return v.Render("wall", view)
}

// Rooms lists the devices of the team by name, for a form in which people choose some of them.
func (p *Pages) Rooms(ctx context.Context, v *page.Visit) (rooms []page.Choice, err error) {
	w, err := p.overviews.get(ctx, v.Team.ID)
	if err != nil {
		return nil, err
	}
	for _, t := range w.tiles {
		rooms = append(rooms, page.Choice{Value: t.ID.String(), Text: t.name})
	}
	return rooms, nil
}

func hasReported(t *tile) bool { return t.LastSeenAt != nil }

// tagOptions returns the tags of the team that most devices have, by key and value, and the current one.
func (w *overview) tagOptions(current string) (options []tagOption) {
	counts := map[tagOption]int{}
	for _, t := range w.tiles {
		for key, value := range t.Metadata {
			counts[tagOption{key + "=" + value, key + ": " + value}]++
		}
	}
	options = slices.SortedFunc(maps.Keys(counts), func(a, b tagOption) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a.Value, b.Value))
	})
	options = options[:min(len(options), maxTagOptions)]
	isCurrent := func(o tagOption) bool { return o.Value == current }
	if current != "" && !slices.ContainsFunc(options, isCurrent) {
		options = append(options, tagOption{current, strings.Replace(current, "=", ": ", 1)})
	}
	slices.SortFunc(options, func(a, b tagOption) int { return cmp.Compare(a.Value, b.Value) })
	return options
}

// tagKeys returns the keys of the tags of the team by which rooms can be grouped.
func (w *overview) tagKeys() []string {
	keys := map[string]bool{}
	for _, t := range w.tiles {
		for key := range t.Metadata {
			keys[key] = true
		}
	}
	all := slices.Sorted(maps.Keys(keys))
	return all[:min(len(all), maxTagOptions)]
}
