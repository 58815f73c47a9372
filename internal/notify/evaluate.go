package notify

import (
	"context"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/roomsensor/accounts"
	"roomsensor/internal/roomsensor/airquality"
	"roomsensor/internal/roomsensor/alerting"
	"roomsensor/internal/wording"
)

// round is the evaluation of one team.
type round struct {
	*alerting.Turn

	notifier *Notifier
	team     accounts.TeamSettings
	rooms    map[uuid.UUID]*alerting.RoomState
	air      alerting.AirAlert
	found    []alerting.Alert      // what is wrong now
	keys     map[alerting.Key]bool // of found
	night    *airquality.Night     // whose coverage was judged; nil if it was not
}

// evaluate changes the alerts of a team, and writes the mails that are due.
func (n *Notifier) evaluate(ctx context.Context, turn *alerting.Turn) error {
	team, err := n.store.TeamSettings(ctx, turn.TeamID)
	if err != nil {
		return err
	}
	turn.SendsMails = n.Sender != nil
	r := &round{
		Turn: turn, notifier: n, team: team, rooms: map[uuid.UUID]*alerting.RoomState{}, keys: map[alerting.Key]bool{},
	}
	r.air = alerting.AirAlert{Settings: &r.team.Alerts, Now: r.Now, Night: r.team.IsNight}
	for _, step := range []func(context.Context) error{
		r.findRooms, r.findRejects, r.findCoverage, r.change, r.report, r.tell,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// add adds an alert, unless there is one with its key.
func (r *round) add(a alerting.Alert) {
	if !r.keys[a.Key()] {
		r.keys[a.Key()] = true
		r.found = append(r.found, a)
	}
}

// findRooms finds devices that send nothing, and rooms with bad air. It reads the readings of those rooms only
// that are bad now.
func (r *round) findRooms(ctx context.Context) error {
	rooms, err := r.notifier.store.RoomStates(ctx, r.TeamID, &r.team.Limits)
	if err != nil {
		return err
	}
	since := map[uuid.UUID]time.Time{}
	for i := range rooms {
		room := &rooms[i]
		r.rooms[room.DeviceID] = room
		if a, ok := r.team.Alerts.SilentAlert(room, r.Now); ok {
			r.add(a)
		}
		if from, ok := r.air.Since(room); ok {
			since[room.DeviceID] = from
		}
	}
	if len(since) == 0 {
		return nil
	}
	last, err := r.notifier.store.LastReadings(ctx, r.TeamID, since)
	if err != nil {
		return err
	}
	for i := range rooms {
		room := &rooms[i]
		if _, bad := since[room.DeviceID]; !bad {
			continue
		}
		if a, ok := r.air.Alert(room, last[room.DeviceID]); ok {
			a.Detail = wording.AlertDetail(r.air.Cause(room))
			r.add(a)
		}
	}
	return nil
}

// findRejects finds units whose readings are rejected.
func (r *round) findRejects(ctx context.Context) error {
	if !r.team.Alerts.On(alerting.RuleRejects) {
		return nil
	}
	units, err := r.notifier.store.UnitRejects(ctx, r.TeamID, r.Now.Add(-2*r.team.Alerts.Rejected-alerting.RejectPause))
	if err != nil {
		return err
	}
	for i := range units {
		if a, ok := r.team.Alerts.RejectAlert(&units[i], r.Now); ok {
			r.add(a)
		}
	}
	return nil
}

// findCoverage finds rooms of which too few readings of the newest night arrived that ended an hour ago.
func (r *round) findCoverage(ctx context.Context) error {
	if !r.team.Alerts.On(alerting.RuleCoverage) || r.Now.Sub(r.NightsAt) < nightsInterval {
		return nil
	}
	night := r.team.Night.Ended(r.Now.Add(-alerting.CoverageDelay), r.team.TimeZone)
	rooms, _, err := r.notifier.store.NightRooms(ctx, r.TeamID, airquality.NightQuery{
		Window: night.Window, Limits: &r.team.Limits, Now: r.Now,
	})
	if err != nil {
		return err
	}
	for len(rooms) > 0 {
		room := rooms[0]
		device := room.Assignment.DeviceID
		for rooms = rooms[1:]; len(rooms) > 0 && rooms[0].Assignment.DeviceID == device; rooms = rooms[1:] {
			room.Present += rooms[0].Present // Its next assignment in this night.
			room.Expected += rooms[0].Expected
		}
		if r.isRetired(&device) || r.isSilent(device) {
			continue // A retired device needs no alert, and one about a device that sends nothing is enough.
		}
		if a, ok := r.team.Alerts.CoverageAlert(&night, &room); ok {
			a.Detail = wording.Arrived(room.Present, room.Expected)
			r.add(a)
		}
	}
	r.night, r.NightsAt = &night, r.Now
	return nil
}

// isSilent reports whether there is an alert about a device that sends nothing.
func (r *round) isSilent(deviceID uuid.UUID) bool {
	_, silent := r.team.Alerts.SilentAlert(r.rooms[deviceID], r.Now)
	return silent
}

// isRetired reports whether a device of the team is retired.
func (r *round) isRetired(deviceID *uuid.UUID) bool {
	return deviceID != nil && r.rooms[*deviceID] == nil
}

// open returns the alerts that have not ended.
func (r *round) open(ctx context.Context) ([]alerting.Alert, error) {
	return r.Alerts(ctx, roomsensor.Forever)
}

// change stores which alerts began and ended. Two rounds of a team never run at the same time.
func (r *round) change(ctx context.Context) error {
	open, err := r.open(ctx)
	if err != nil {
		return err
	}
	before := make(map[alerting.Key]*alerting.Alert, len(open))
	for i := range open {
		before[open[i].Key()] = &open[i]
	}
	count := len(open)
	for i := range r.found {
		now := &r.found[i]
		known := before[now.Key()]
		if known == nil {
			if count >= mostOpen(now.Rule) {
				continue
			}
			count++
		}
		if err := r.store(ctx, known, now); err != nil {
			return err
		}
		delete(before, now.Key())
	}
	for i := range open {
		a := &open[i]
		if _, gone := before[a.Key()]; !gone || !r.judged(a.Rule) && !r.isRetired(a.DeviceID) {
			continue
		}
		if err := r.EndAlert(ctx, a.ID, r.outcome(a)); err != nil {
			return err
		}
	}
	return nil
}

// mostOpen returns the number of open alerts at which none of a rule begins.
func mostOpen(rule alerting.Rule) int {
	if rule == alerting.RuleBad {
		return alerting.MaxOpen
	}
	return alerting.MaxAlerts
}

// store begins an alert, or renews the open one. What an alert about bad air says stays: it is about its first reading.
// The first reject of a unit stays too: a round reads the last ones only.
func (r *round) store(ctx context.Context, before, now *alerting.Alert) error {
	if before != nil && now.Rule == alerting.RuleRejects && before.Since.Before(now.Since) {
		now.Since = before.Since
	}
	switch {
	case before == nil:
		return r.BeginAlert(ctx, now)
	case now.Rule == alerting.RuleBad || now.Detail == before.Detail && now.Since.Equal(before.Since):
		return nil
	}
	return r.RenewAlert(ctx, before.ID, now.Detail, now.Since)
}

// judged reports whether this round knows all alerts of a rule: the coverage of a night is not judged in each.
func (r *round) judged(rule alerting.Rule) bool {
	return rule != alerting.RuleCoverage || r.night != nil || !r.team.Alerts.On(rule)
}

// outcome returns why an open alert ended.
func (r *round) outcome(a *alerting.Alert) alerting.Outcome {
	switch {
	case !r.team.Alerts.On(a.Rule):
		return alerting.Off
	case a.Rule == alerting.RuleBad && a.DeviceID != nil:
		return r.air.Ended(r.rooms[*a.DeviceID])
	case a.Rule == alerting.RuleCoverage && r.night != nil && a.Since.Equal(r.night.Window.From):
		return alerting.Retracted
	}
	return alerting.Over
}

// tell writes a mail to each member who wants mails about alerts and has not had one of the rule for some time.
func (r *round) tell(ctx context.Context) error {
	if !r.SendsMails {
		return nil
	}
	choices, err := r.Choices(ctx)
	if err != nil || len(choices) == 0 {
		return err
	}
	// What a mail reports is not older than the last one, which a quiet rule may have had long ago.
	recent, err := r.Alerts(ctx, r.Now.Add(-alertReach))
	if err != nil {
		return err
	}
	for i := range choices {
		if err := r.tellMember(ctx, &choices[i], recent); err != nil {
			return err
		}
	}
	return nil
}

// alertReach is the time after its end within which an alert is reported, if the mail had to wait.
const alertReach = 24 * time.Hour

func (r *round) tellMember(ctx context.Context, c *alerting.MailChoice, recent []alerting.Alert) error {
	var news []alerting.Alert
	due := c.Due(r.Now)
	for i := range recent {
		if told, ok := due[recent[i].Rule]; ok && recent[i].News(told) {
			news = append(news, recent[i])
		}
	}
	if len(news) == 0 {
		return nil
	}
	mail, err := r.alertMail(wording.FormatOf(c.Format, ""), news)
	if err != nil {
		return err
	}
	mail.UserID = c.UserID
	for i := range news {
		c.Told[news[i].Rule] = r.Now
	}
	if err := r.Enqueue(ctx, mail); err != nil {
		return err
	}
	return r.SetTold(ctx, c)
}
