package team

import (
	"context"
	"errors"
	"net/url"
	"slices"

	"github.com/google/uuid"

	"roomsensor/internal/dashboard/page"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/roomsensor/accounts"
	"roomsensor/internal/roomsensor/airquality"
	"roomsensor/internal/wording"
)

// ruleRow is a rule that replaces a limit for some rooms.
type ruleRow struct {
	Key       string // names the rule in a form
	For, Name string
	Text      string
	First     bool // whether it cannot be moved up
}

// ruleForm is the form that adds a rule, as entered.
type ruleForm struct {
	DeviceID, Device string // of a rule about one device
	Tag, Metric      string
	Ends             [len(limitEnds)]string
}

func keyOf(r *airquality.LimitRule) string {
	if r.DeviceID != uuid.Nil {
		return r.DeviceID.String() + " " + r.Metric.String()
	}
	return r.Tag + " " + r.Metric.String()
}

// addRules adds the rules of the team, and the form of another one. The query can name a device.
func (p *Pages) addRules(ctx context.Context, v *page.Visit, view *settingsView) error {
	tags := 0
	for i := range v.Team.Limits.Rules {
		r := &v.Team.Limits.Rules[i]
		row := ruleRow{
			Key: keyOf(r), For: r.Tag, Name: wording.MetricTexts[r.Metric].Name, Text: wording.LimitText(r.Metric, r.Limit),
			First: true,
		}
		if r.DeviceID == uuid.Nil {
			row.First = tags == 0
			tags++
		} else {
			device, err := p.backend.Device(ctx, v.Team.ID, r.DeviceID)
			if errors.Is(err, roomsensor.ErrNotFound) {
				continue // It was deleted.
			}
			if err != nil {
				return err
			}
			row.For = wording.TextOr(device.DisplayName, device.HardwareID)
		}
		view.Rules = append(view.Rules, row)
	}
	id, err := uuid.Parse(v.Echo.QueryParam("device"))
	if err != nil {
		return nil //nolint:nilerr // The form is about a tag.
	}
	device, err := p.backend.Device(ctx, v.Team.ID, id)
	if err != nil {
		return err
	}
	view.Rule.DeviceID, view.Rule.Device = id.String(), wording.TextOr(device.DisplayName, device.HardwareID)
	return nil
}

// ChangeRules adds a rule, removes one, or moves one up.
func (p *Pages) ChangeRules(ctx context.Context, v *page.Visit) error {
	remove, up := v.Form("remove"), v.Form("up")
	errs := page.FormErrors{}
	message := "The limits are saved."
	_, err := p.backend.UpdateTeamSettings(ctx, v.Team.ID, func(team *accounts.TeamSettings) error {
		rules := &team.Limits.Rules
		switch {
		case remove != "":
			*rules = slices.DeleteFunc(*rules, func(r airquality.LimitRule) bool { return keyOf(&r) == remove })
			message = "The rule was removed."
		case up != "":
			moveUp(*rules, up)
		default:
			if err := p.addRule(ctx, v, rules, errs); err != nil {
				return err
			}
		}
		v.Team = *team
		if len(errs) > 0 {
			return errRefused
		}
		return nil
	})
	if len(errs) > 0 {
		view, err := p.settingsView(ctx, v, formOf(&v.Team))
		if err != nil {
			return err
		}
		view.Errors = errs
		view.Rule.Tag, view.Rule.Metric = v.Form("tag"), v.Form("metric")
		for i, end := range limitEnds {
			view.Rule.Ends[i] = v.Form("rule" + end)
		}
		return v.Invalid("settings", view)
	}
	if err != nil {
		return err
	}
	return v.Redirect(v.Path("settings")+"#rules", message)
}

// moveUp exchanges a rule about a tag with the one before it.
func moveUp(rules []airquality.LimitRule, key string) {
	before := -1
	for i := range rules {
		if rules[i].DeviceID != uuid.Nil {
			continue
		}
		if keyOf(&rules[i]) == key && before >= 0 {
			rules[before], rules[i] = rules[i], rules[before]
			return
		}
		before = i
	}
}

// addRule adds the rule of the form. It replaces one about the same rooms and metric.
func (p *Pages) addRule(
	ctx context.Context, v *page.Visit, rules *[]airquality.LimitRule, errs page.FormErrors,
) error {
	var r airquality.LimitRule
	if text := v.Form("device_id"); text != "" {
		r.DeviceID, _ = uuid.Parse(text) // A malformed id is like one that does not exist.
		switch _, err := p.backend.Device(ctx, v.Team.ID, r.DeviceID); {
		case errors.Is(err, roomsensor.ErrNotFound):
			errs.Add("rule", "There is no such device. Open the page of the device, and choose its limits there.")
		case err != nil:
			return err
		}
	} else {
		key, value, ok := wording.ParseTag(v.Form("tag"))
		if !ok || roomsensor.CheckMetadataKey(key) != nil || roomsensor.CheckMetadataValue(value) != nil {
			errs.Add("tag", "Enter a tag as key=value, such as kind=dorm.")
		}
		r.Tag = key + "=" + value
	}
	var known bool
	if r.Metric, known = roomsensor.MetricNamed(v.Form("metric")); !known {
		errs.Add("metric", "Choose a metric.")
	}
	form := url.Values{}
	for _, end := range limitEnds {
		form.Set(r.Metric.String()+end, v.Form("rule"+end))
	}
	var err error
	if r.Limit, err = readLimit(form, r.Metric); err != nil {
		errs.Add("rule", page.Message(err))
	}
	same := func(other airquality.LimitRule) bool { return keyOf(&other) == keyOf(&r) }
	if at := slices.IndexFunc(*rules, same); at >= 0 {
		(*rules)[at] = r
		return nil
	}
	if *rules = append(*rules, r); len(*rules) > airquality.MaxLimitRules {
		errs.Add("rule", "A team has at most "+wording.Plural(airquality.MaxLimitRules, "rule")+". Remove one first.")
	}
	return nil
}
