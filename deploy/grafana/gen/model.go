package main

import "fmt"

// The part of Grafana's dashboard model (schema version 39, Grafana 11) that the dashboards use.
type (
	dashboard struct {
		UID           string     `json:"uid"`
		Title         string     `json:"title"`
		Description   string     `json:"description"`
		Tags          []string   `json:"tags"`
		SchemaVersion int        `json:"schemaVersion"`
		Editable      bool       `json:"editable"`
		GraphTooltip  int        `json:"graphTooltip"` // 1 shares the crosshair
		Refresh       string     `json:"refresh"`
		Time          timeRange  `json:"time"`
		Timezone      string     `json:"timezone"`
		Templating    templating `json:"templating"`
		Links         []link     `json:"links"`
		Panels        []panel    `json:"panels"`
	}
	timeRange struct {
		From string `json:"from"`
		To   string `json:"to"`
	}
	templating struct {
		List []variable `json:"list"`
	}
	variable struct {
		Name  string `json:"name"`
		Label string `json:"label"`
		Type  string `json:"type"`
		Query string `json:"query"`
	}
	link struct {
		Title       string   `json:"title"`
		Type        string   `json:"type"`
		Tags        []string `json:"tags"`
		AsDropdown  bool     `json:"asDropdown"`
		IncludeVars bool     `json:"includeVars"`
		KeepTime    bool     `json:"keepTime"`
	}
	panel struct {
		ID          int         `json:"id"`
		Type        string      `json:"type"`
		Title       string      `json:"title"`
		Description string      `json:"description"`
		Datasource  datasource  `json:"datasource"`
		GridPos     gridPos     `json:"gridPos"`
		FieldConfig fieldConfig `json:"fieldConfig"`
		Options     any         `json:"options"`
		Targets     []target    `json:"targets"`
	}
	datasource struct {
		Type string `json:"type"`
		UID  string `json:"uid"`
	}
	gridPos struct {
		H int `json:"h"`
		W int `json:"w"`
		X int `json:"x"`
		Y int `json:"y"`
	}
	fieldConfig struct {
		Defaults  fieldDefaults `json:"defaults"`
		Overrides []any         `json:"overrides"`
	}
	fieldDefaults struct {
		Unit       string     `json:"unit"`
		Min        *float64   `json:"min,omitempty"`
		Thresholds thresholds `json:"thresholds"`
	}
	thresholds struct {
		Mode  string `json:"mode"`
		Steps []step `json:"steps"`
	}
	step struct {
		Color string   `json:"color"`
		Value *float64 `json:"value"`
	}
	target struct {
		RefID        string     `json:"refId"`
		Expr         string     `json:"expr"`
		LegendFormat string     `json:"legendFormat"`
		Datasource   datasource `json:"datasource"`
	}
)

// The units of Grafana that the panels use.
const (
	unitSeconds = "s"
	unitBytes   = "bytes"
	unitPercent = "percentunit"
	unitNumber  = "short"
	unitPerSec  = "cps"
)

// source is the data source that the reader chooses at the top of a dashboard.
var source = datasource{Type: "prometheus", UID: "${datasource}"}

// graph is a panel before it has a place.
type graph struct {
	title, about, unit string
	queries            []query
	isStat             bool
	limit              float64 // from which a stat is red; 0 for none
	belowIsBad         bool    // below limit a stat is red
}

// query is a line of a graph, or several.
type query struct{ expr, legend string }

const (
	gridWidth   = 24
	graphWidth  = 12
	graphHeight = 8
	statWidth   = 4
	statHeight  = 4
)

// newDashboard lays out graphs in rows from left to right.
func newDashboard(name, about string, graphs []graph) dashboard {
	d := dashboard{
		UID: "roomsensor-" + name, Title: "roomsensor: " + name, Description: about, Tags: []string{"roomsensor"},
		SchemaVersion: 39, GraphTooltip: 1, Refresh: "30s", Timezone: "browser", Time: timeRange{"now-6h", "now"},
		Templating: templating{[]variable{{"datasource", "Data source", "datasource", "prometheus"}}},
		Links:      []link{{"roomsensor", "dashboards", []string{"roomsensor"}, true, true, true}},
	}
	x, y, height := 0, 0, 0
	for i := range graphs {
		g := &graphs[i]
		w, h := graphWidth, graphHeight
		if g.isStat {
			w, h = statWidth, statHeight
		}
		if x+w > gridWidth || h != height && height != 0 {
			x, y = 0, y+height
		}
		d.Panels = append(d.Panels, g.panel(i+1, gridPos{h, w, x, y}))
		x, height = x+w, h
	}
	return d
}

func (g *graph) panel(id int, at gridPos) panel {
	p := panel{
		ID: id, Type: "timeseries", Title: g.title, Description: g.about, Datasource: source, GridPos: at,
		FieldConfig: fieldConfig{fieldDefaults{g.unit, new(float64), g.thresholds()}, []any{}},
		Options: map[string]any{
			"legend":  map[string]any{"displayMode": "table", "placement": "bottom", "calcs": []string{"lastNotNull", "max"}},
			"tooltip": map[string]any{"mode": "multi", "sort": "desc"},
		},
	}
	if g.isStat {
		p.Type = "stat"
		p.Options = map[string]any{
			"colorMode": "value", "graphMode": "area",
			"reduceOptions": map[string]any{"calcs": []string{"lastNotNull"}, "fields": "", "values": false},
		}
	}
	for i, q := range g.queries {
		p.Targets = append(p.Targets, target{fmt.Sprintf("%c", 'A'+i), q.expr, q.legend, source})
	}
	return p
}

// thresholds colors a stat: green, and red from the limit on or below it.
func (g *graph) thresholds() thresholds {
	colors := [2]string{"green", "red"}
	if g.belowIsBad {
		colors = [2]string{"red", "green"}
	}
	steps := []step{{colors[0], nil}}
	if g.limit != 0 {
		steps = append(steps, step{colors[1], &g.limit})
	}
	return thresholds{"absolute", steps}
}
