// Package overview is the page with a tile for each device of a team, and the streams that keep its tiles up to date.
package overview

import (
	"cmp"
	"context"
	"html/template"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"roomsensor/internal/dashboard/page"
)

const (
	// pageTiles is how many tiles a page has.
	pageTiles = 1000
	// maxTagOptions is how many tags people can choose from.
	maxTagOptions = 200
	// maxSearch is the longest search, in bytes.
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

// overviewFilter selects the tiles of a page. All of it is in the query of its address.
type overviewFilter struct {
	search string // in lower case
	tag    string // KEY=VALUE
	status string // key of a statusText
	page   int    // from 0
}

// readFilter reads a filter. problem is a sentence about a value that is not valid, which is left out.
func readFilter(query url.Values) (f overviewFilter, problem string) {
	f.search, f.tag = strings.ToLower(strings.TrimSpace(query.Get("q"))), query.Get("tag")
	if len(f.search) > maxSearch {
		f.search, problem = "", "The search has more than 200 characters. Search for a part of the name."
	}
	f.status = query.Get("status")
	known := func(s page.StatusText) bool { return s.Key == f.status }
	if f.status != "" && !slices.ContainsFunc(page.StatusTexts, known) {
		f.status, problem = "", "There is no such status. Choose one of those above the devices."
	}
	if text := query.Get("page"); text != "" {
		number, err := strconv.Atoi(text)
		if err != nil || number < 1 || number > maxTiles/pageTiles {
			return f, "There is no such page. Start with the first one."
		}
		f.page = number - 1
	}
	return f, problem
}

// matches reports whether a tile has what is searched for, and the tag.
func (f *overviewFilter) matches(t *tile) bool {
	if !strings.Contains(t.search, f.search) {
		return false
	}
	if f.tag == "" {
		return true
	}
	for key, value := range t.Metadata {
		if len(key)+1+len(value) == len(f.tag) && key+"="+value == f.tag {
			return true
		}
	}
	return false
}

// selection is what a filter selects from an overview.
type selection struct {
	tiles  []*tile        // of the page
	total  int            // of all pages
	counts map[string]int // by status; "" for all. The filter by status does not apply
}

func (w *overview) choose(f *overviewFilter) (s selection) {
	s.counts = map[string]int{}
	for _, t := range w.tiles {
		if !f.matches(t) {
			continue
		}
		key := t.statusText().Key
		s.counts[""]++
		s.counts[key]++
		if f.status == "" || f.status == key {
			s.tiles = append(s.tiles, t)
		}
	}
	s.total = len(s.tiles)
	from := min(f.page*pageTiles, s.total)
	s.tiles = s.tiles[from:min(from+pageTiles, s.total)]
	return s
}

// summary says in words what is selected from a number of devices.
func (s *selection) summary(devices int) string {
	switch {
	case devices == 0:
		return "No devices"
	case s.total < devices:
		return strconv.Itoa(s.total) + " of " + page.Plural(devices, "device")
	}
	var parts []string
	for _, status := range page.StatusTexts {
		if n := s.counts[status.Key]; n > 0 {
			parts = append(parts, strconv.Itoa(n)+" "+strings.ToLower(status.Text))
		}
	}
	return page.Plural(devices, "device") + ": " + strings.Join(parts, ", ")
}

// overviewView is the data of web/pages/overview.html.
type overviewView struct {
	Search, Tag, Problem string
	Unit                 string // the search if it is a hardware id; otherwise empty
	Status               string
	Summary              string
	Filtered             bool
	Tags                 []tagOption
	Tabs                 []statusTab
	Tiles                []template.HTML
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
	TeamID               uuid.UUID
}

// tagOption is a tag to choose.
type tagOption struct{ Value, Text string }

// statusTab is a link that selects a status.
type statusTab struct {
	Key, Text string
	Count     int
	Current   bool
}

// Previous and Next are the numbers of other pages.
func (w overviewView) Previous() int { return w.Page - 1 }

// Next is the number of the next page.
func (w overviewView) Next() int { return w.Page + 1 }

// Show handles the page with a tile per device.
func (p *Pages) Show(ctx context.Context, v *page.Visit) error {
	w, err := p.overviews.get(ctx, v.Team.ID, overviewAge)
	if err != nil {
		return err
	}
	query := v.Echo.QueryParams()
	f, problem := readFilter(query)
	selected := w.choose(&f)
	view := overviewView{
		Search: query.Get("q"), Unit: page.UnitOf(query.Get("q")), Tag: f.tag, Status: f.status, Problem: problem,
		Summary: selected.summary(len(w.tiles)), Tags: w.tagOptions(f.tag),
		Filtered: f.search != "" || f.tag != "" || f.status != "",
		Page:     f.page + 1, Pages: (selected.total + pageTiles - 1) / pageTiles,
		Devices: len(w.tiles), Partial: w.partial, Silent: !slices.ContainsFunc(w.tiles, hasReported),
		Awaits: w.awaits && w.linesAt.IsZero(), MadeAt: w.at,
		Version: w.token(), Stream: v.Path("tiles"), Docs: p.publicURL + "/docs", TeamID: v.Team.ID,
	}
	view.MadeClock, view.MadeStamp = w.at.In(v.Zone()).Format(time.TimeOnly), w.at.UTC().Format(time.RFC3339Nano)
	view.Zone = v.Zone().String()
	if text := v.Echo.Request().URL.RawQuery; text != "" {
		view.Stream += "?" + text
	}
	for _, status := range append([]page.StatusText{{Text: "All"}}, page.StatusTexts...) {
		view.Tabs = append(view.Tabs, statusTab{
			status.Key, status.Text, selected.counts[status.Key], status.Key == f.status,
		})
	}
	style := tileStyle(&v.Team)
	for _, t := range selected.tiles {
		html, err := t.render(v, style)
		if err != nil {
			return err
		}
		view.Tiles = append(view.Tiles, html)
	}
	return v.Render("overview", view)
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
