package fleet

import (
	"encoding/json"
	"fmt"

	"github.com/google/uuid"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/roomsensor/airquality"
)

// limitColumn is a limit in the column limits of teams.
type limitColumn struct {
	Low  *boundColumn `json:"low,omitempty"`
	High *boundColumn `json:"high,omitempty"`
}

type boundColumn struct {
	Warn *float32 `json:"warn,omitempty"`
	Bad  *float32 `json:"bad,omitempty"`
}

// ruleColumn is a rule in the column limits, about a device or a tag.
type ruleColumn struct {
	Device *uuid.UUID  `json:"device,omitempty"`
	Tag    string      `json:"tag,omitempty"`
	Metric string      `json:"metric"`
	Limit  limitColumn `json:"limit"`
}

func encodeLimits(limits *airquality.TeamLimits) ([]byte, error) {
	column := map[string]any{}
	for _, m := range roomsensor.Metrics {
		if l := limits.Limits[m]; !l.IsZero() {
			column[m.String()] = newLimitColumn(l)
		}
	}
	var rules []ruleColumn
	for i := range limits.Rules {
		r := &limits.Rules[i]
		rule := ruleColumn{Tag: r.Tag, Metric: r.Metric.String(), Limit: newLimitColumn(r.Limit)}
		if r.DeviceID != uuid.Nil {
			rule.Device = &r.DeviceID
		}
		rules = append(rules, rule)
	}
	if len(rules) > 0 {
		column["rules"] = rules
	}
	text, err := json.Marshal(column)
	if err != nil {
		return nil, fmt.Errorf("encoding limits: %w", err)
	}
	return text, nil
}

func newLimitColumn(l airquality.Limit) (column limitColumn) {
	bound := func(b airquality.Bound) *boundColumn {
		if b == (airquality.Bound{}) {
			return nil
		}
		return new(boundColumn(b))
	}
	return limitColumn{bound(l.Low), bound(l.High)}
}

func (c *limitColumn) limit() (l airquality.Limit) {
	bound := func(b *boundColumn) airquality.Bound {
		if b == nil {
			return airquality.Bound{}
		}
		if b.Warn == nil {
			b.Warn = b.Bad
		}
		return airquality.Bound(*b)
	}
	return airquality.Limit{Low: bound(c.Low), High: bound(c.High)}
}

// decodeLimits ignores what SQL can have stored beside limits and rules.
func decodeLimits(text []byte) (limits airquality.TeamLimits) {
	var column map[string]json.RawMessage
	if json.Unmarshal(text, &column) != nil {
		return limits
	}
	for _, m := range roomsensor.Metrics {
		var c limitColumn
		if text, ok := column[m.String()]; ok && json.Unmarshal(text, &c) == nil {
			limits.Limits[m] = c.limit()
		}
	}
	var rules []ruleColumn
	if json.Unmarshal(column["rules"], &rules) != nil {
		return limits
	}
	for i := range rules[:min(len(rules), airquality.MaxLimitRules)] {
		c := &rules[i]
		m, known := roomsensor.MetricNamed(c.Metric)
		if !known || (c.Device == nil) == (c.Tag == "") {
			continue
		}
		rule := airquality.LimitRule{Tag: c.Tag, Metric: m, Limit: c.Limit.limit()}
		if c.Device != nil {
			rule.DeviceID = *c.Device
		}
		limits.Rules = append(limits.Rules, rule)
	}
	return limits
}
