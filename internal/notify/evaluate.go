package notify

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/wording"
)

// round is the evaluation of one team.
type round struct {
	*roomsensor.AlertTurn

	notifier *Notifier
	team     roomsensor.TeamSettings
	rooms    map[uuid.UUID]*roomsensor.RoomState
	air      roomsensor.AirAlert
	found    map[roomsensor.AlertKey]roomsensor.Alert
	night    *roomsensor.Night // whose coverage was judged; nil if it was not
}

// evaluate changes the alerts of a team, and writes the mails that are due.
func (n *Notifier) evaluate(ctx context.Context, turn *roomsensor.AlertTurn) error {
	team, err := n.store.TeamSettings(ctx, turn.TeamID)
	if err != nil {
		return err
	}
	turn.SendsMails = n.Sender != nil
	r := &round{
		AlertTurn: turn, notifier: n, team: team,
		rooms: map[uuid.UUID]*roomsensor.RoomState{}, found: map[roomsensor.AlertKey]roomsensor.Alert{},
	}
	r.air = roomsensor.AirAlert{
		Settings: &r.team.Alerts, Now: r.Now,
		Night: func(at time.Time) bool { return team.Night.Contains(at, team.TimeZone) },
	}
	for _, step := range []func(context.Context) error{
		r.findRooms, r.findRejects, r.findCoverage, r.change, r.report, r.tell,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (r *round) add(a roomsensor.Alert) {
	if len(r.found) < roomsensor.MaxAlerts {
		r.found[a.Key()] = a
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
	for id := range since {
		room := r.rooms[id]
		a, ok := r.air.Alert(room, last[id])
		if cause, known := roomsensor.WorstMetric(&room.Limits, &room.Newest.Values); ok && known {
			a.Detail = wording.AlertCause(cause)
			r.add(a)
		}
	}
	return nil
}

// findRejects finds units whose readings are rejected.
func (r *round) findRejects(ctx context.Context) error {
	if !r.team.Alerts.On(roomsensor.RuleRejects) {
		return nil
	}
	units, err := r.notifier.store.UnitRejects(ctx, r.TeamID, r.Now.Add(-2*r.team.Alerts.Rejected-roomsensor.RejectPause))
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
	if !r.team.Alerts.On(roomsensor.RuleCoverage) || r.Now.Sub(r.NightsAt) < nightsInterval {
		return nil
	}
	night := r.team.Night.Last(r.Now.Add(-roomsensor.CoverageDelay), r.team.TimeZone)
	if night.Window.To.After(r.Now.Add(-roomsensor.CoverageDelay)) {
		night = r.team.Night.Before(night, r.team.TimeZone, 1)[0]
	}
	rooms, _, err := r.notifier.store.NightRooms(ctx, r.TeamID, roomsensor.NightQuery{
		Window: night.Window, Limits: &r.team.Limits, Now: r.Now,
	})
	if err != nil {
		return err
	}
	for i := range rooms {
		a, ok := r.team.Alerts.CoverageAlert(&night, &rooms[i])
		_, silent := r.found[roomsensor.AlertKey{Rule: roomsensor.RuleSilent, Subject: a.Subject}]
		if ok && !silent { // One alert about a device that sends nothing is enough.
			a.Detail = wording.Arrived(rooms[i].Present, rooms[i].Expected)
			r.add(a)
		}
	}
	r.night, r.NightsAt = &night, r.Now
	return nil
}

// change stores which alerts began and ended. Two rounds of a team never run at the same time.
func (r *round) change(ctx context.Context) error {
	stored, err := r.Alerts(ctx, r.Now)
	if err != nil {
		return err
	}
	for i := range stored {
		a := &stored[i]
		if a.EndedAt != nil {
			continue
		}
		now, ok := r.found[a.Key()]
		delete(r.found, a.Key())
		switch {
		case ok && (now.Detail != a.Detail || !now.Since.Equal(a.Since)) && a.Rule != roomsensor.RuleBad:
			err = r.RenewAlert(ctx, a.ID, now.Detail, now.Since)
		case !ok && (a.Rule != roomsensor.RuleCoverage || r.night != nil || !r.team.Alerts.On(a.Rule)):
			err = r.EndAlert(ctx, a.ID, r.outcome(a))
		}
		if err != nil {
			return err
		}
	}
	for _, key := range sortedKeys(r.found) {
		if err := r.BeginAlert(ctx, new(r.found[key])); err != nil {
			return err
		}
	}
	return nil
}

// sortedKeys makes the order of new alerts the same in each run.
func sortedKeys(found map[roomsensor.AlertKey]roomsensor.Alert) []roomsensor.AlertKey {
	keys := make([]roomsensor.AlertKey, 0, len(found))
	for key := range found {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b roomsensor.AlertKey) int {
		x, y := found[a], found[b]
		return x.Since.Compare(y.Since)
	})
	return keys
}

// outcome returns why an open alert ended.
func (r *round) outcome(a *roomsensor.Alert) roomsensor.AlertOutcome {
	switch {
	case !r.team.Alerts.On(a.Rule):
		return roomsensor.AlertOff
	case a.Rule == roomsensor.RuleBad && a.DeviceID != nil:
		return r.air.Ended(r.rooms[*a.DeviceID])
	case a.Rule == roomsensor.RuleCoverage && r.night != nil && a.Since.Equal(r.night.Window.From):
		return roomsensor.AlertRetracted
	}
	return roomsensor.AlertOver
}

// tell writes a mail to each member who wants mails about alerts and has not had one of the rule for some time.
func (r *round) tell(ctx context.Context) error {
	if r.notifier.Sender == nil {
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

func (r *round) tellMember(ctx context.Context, c *roomsensor.MailChoice, recent []roomsensor.Alert) error {
	var news []roomsensor.Alert
	due := c.Due(r.Now)
	for i := range recent {
		if told, ok := due[recent[i].Rule]; ok && recent[i].News(told) {
			news = append(news, recent[i])
		}
	}
	if len(news) == 0 {
		return nil
	}
	mail, err := r.alertMail(news)
	if err != nil {
		return err
	}
	mail.UserID = c.UserID
	if c.Told == nil {
		c.Told = map[roomsensor.AlertRule]time.Time{}
	}
	for i := range news {
		c.Told[news[i].Rule] = r.Now
	}
	if err := r.Enqueue(ctx, mail); err != nil {
		return err
	}
	return r.SetTold(ctx, c)
}
