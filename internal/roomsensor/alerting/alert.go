package alerting

import (
	"cmp"
	"context"
	"math"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/roomsensor/airquality"
)

// Rule is what an alert is about.
type Rule string

// The rules of alerts.
const (
	RuleSilent   Rule = "silent"   // a device sends nothing
	RuleBad      Rule = "bad"      // the air of a room is bad
	RuleCoverage Rule = "coverage" // readings of the last night are missing
	RuleRejects  Rule = "rejects"  // the readings of a unit are rejected
)

// Rules lists the rules.
var Rules = []Rule{RuleBad, RuleSilent, RuleCoverage, RuleRejects}

// DefaultSettings are those of a team that chose no others. The columns of teams have the same defaults.
var DefaultSettings = Settings{
	Silent: 3 * time.Hour, Bad: 20 * time.Minute, Coverage: 80, Rejected: time.Hour,
	MailAt: 7*60 + 30, MailDay: time.Monday,
}

// Settings are the rules of a team, and when its mails are sent. A rule of 0 is off.
type Settings struct {
	Silent     time.Duration    // without an upload; whole minutes
	Bad        time.Duration    // of bad air; whole minutes
	BadAtNight bool             // only in the hours of the night
	Coverage   int              // percent of the expected readings of a night
	Rejected   time.Duration    // during which readings are rejected; whole minutes
	MailAt     roomsensor.Clock // of the morning mail, in the zone of the team
	MailDay    time.Weekday     // of the weekly summary
}

// On reports whether a rule is on.
func (s *Settings) On(rule Rule) bool {
	switch rule {
	case RuleSilent:
		return s.Silent > 0
	case RuleBad:
		return s.Bad > 0
	case RuleCoverage:
		return s.Coverage > 0
	case RuleRejects:
		return s.Rejected > 0
	}
	return false
}

// The times of alerts. Late data is normal: an alert about bad air needs fresh readings, and one about the coverage of
// a night waits.
const (
	// Fresh is the greatest age of the newest reading of bad air.
	Fresh = 30 * time.Minute
	// CoverageDelay is the time between the end of a night and the judgment of its coverage.
	CoverageDelay = time.Hour
	// RejectPause is the time without a reject after which the rejects of a unit are over.
	RejectPause = 30 * time.Minute
	// MaxAlerts is the number of open alerts of a team at which only bad air begins another one.
	MaxAlerts = 1000
	// MaxOpen is how many alerts of a team are open at most: an outage of very many devices leaves room for bad air.
	MaxOpen = 2 * MaxAlerts
	// Late is the age of the last evaluation from which nobody evaluates alerts. An evaluation is due each minute.
	Late = 10 * time.Minute
)

// Outcome is why an alert ended.
type Outcome string

// The outcomes.
const (
	Over      Outcome = "over"
	Unknown   Outcome = "unknown"   // there are no fresh readings
	Retracted Outcome = "retracted" // late data changed what was known
	Off       Outcome = "off"       // the rule was switched off
)

// Alert is something that was wrong, from when to when.
type Alert struct {
	ID       uuid.UUID
	Rule     Rule
	Subject  string     // id of a device, or hardware id of a unit whose uploads are rejected
	DeviceID *uuid.UUID // nil for a unit that is not registered
	Detail   string     // of bad air: the metric and its limit (wording.AlertDetail); otherwise words
	Since    time.Time  // when the cause began
	NotedAt  time.Time
	EndedAt  *time.Time
	Outcome  Outcome // empty while it is open

	Name  string // of the device; Subject without one
	Label string // of the assignment of the device now; empty without one
}

// Key identifies what an alert is about: one alert of a key is open at a time.
type Key struct {
	Rule    Rule
	Subject string
}

// Key returns the key of an alert.
func (a *Alert) Key() Key { return Key{a.Rule, a.Subject} }

// RoomState is what alerts need to know about a device.
type RoomState struct {
	DeviceID   uuid.UUID
	Limits     airquality.Limits
	LastSeenAt time.Time            // arrival of the newest upload; zero before the first one
	Newest     roomsensor.ExportRow // the newest reading; its BucketAt is zero without one
}

// fresh reports whether the newest reading says what the air is like now.
func (r *RoomState) fresh(now time.Time) bool {
	return now.Sub(r.Newest.BucketAt) <= Fresh+roomsensor.BucketLength
}

// AirAlert says whether the air of a room is bad now, and judges the rule about bad air. At night, the limits of sound
// count too.
type AirAlert struct {
	Settings *Settings
	Night    func(time.Time) bool // reports whether a time is in the hours of the night
	Now      time.Time
}

// judge returns the verdict on a reading, as far as the rule counts it.
func (j *AirAlert) judge(r *RoomState, m *roomsensor.ExportRow) airquality.Air {
	night := j.Night(m.BucketAt)
	if j.Settings.BadAtNight && !night {
		return airquality.Air{}
	}
	return r.Limits.Judge(&m.Values, night)
}

// Since returns from when on readings decide about an alert, for a room whose newest reading is fresh and bad. ok is
// false for another one, which has no alert.
func (j *AirAlert) Since(r *RoomState) (since time.Time, ok bool) {
	ok = j.Settings.Bad > 0 && r.fresh(j.Now) && j.judge(r, &r.Newest).Verdict == airquality.Bad
	return r.Newest.BucketAt.Add(-j.Settings.Bad - Fresh), ok
}

// Alert returns the alert of a room whose last readings are all bad, the oldest first, for as long as the rule says. A
// gap of more than Fresh ends the time of bad air.
func (j *AirAlert) Alert(r *RoomState, last []roomsensor.ExportRow) (a Alert, ok bool) {
	first := r.Newest.BucketAt
	for i := len(last) - 1; i >= 0; i-- {
		m := &last[i]
		if first.Sub(m.BucketAt) > Fresh || j.judge(r, m).Verdict != airquality.Bad {
			break
		}
		first = m.BucketAt
	}
	if r.Newest.BucketAt.Add(roomsensor.BucketLength).Sub(first) < j.Settings.Bad {
		return Alert{}, false
	}
	return Alert{Rule: RuleBad, Subject: r.DeviceID.String(), DeviceID: &r.DeviceID, Since: first}, true
}

// Ended returns why the alert of a room ended.
func (j *AirAlert) Ended(r *RoomState) Outcome {
	switch {
	case r == nil || !r.fresh(j.Now):
		return Unknown
	case j.judge(r, &r.Newest).Verdict == airquality.Bad:
		return Retracted
	}
	return Over
}

// Cause returns the metric of the newest reading that the rule judges bad: that which is beyond its bad limit by the
// most, in parts of the limit. The reading must be bad.
func (j *AirAlert) Cause(r *RoomState) (c airquality.Cause) {
	air, most := j.judge(r, &r.Newest), -1.0
	add := func(m roomsensor.Metric, v airquality.Verdict, high bool, limit *float32) {
		if v != airquality.Bad {
			return
		}
		x, _ := r.Newest.Values.Get(m)
		if beyond := math.Abs(float64(x-*limit)) / math.Max(1, math.Abs(float64(*limit))); beyond > most {
			c, most = airquality.Cause{Metric: m, High: high, Limit: *limit}, beyond
		}
	}
	for _, m := range roomsensor.Metrics {
		add(m, air.High[m], true, r.Limits[m].High.Bad)
		add(m, air.Low[m], false, r.Limits[m].Low.Bad)
	}
	return c
}

// SilentAlert returns the alert of a device that sends nothing.
func (s *Settings) SilentAlert(r *RoomState, now time.Time) (a Alert, ok bool) {
	if s.Silent == 0 || r.LastSeenAt.IsZero() || now.Sub(r.LastSeenAt) < s.Silent {
		return Alert{}, false
	}
	return Alert{Rule: RuleSilent, Subject: r.DeviceID.String(), DeviceID: &r.DeviceID, Since: r.LastSeenAt}, true
}

// CoverageAlert returns the alert of a room of which too few readings of a night arrived.
func (s *Settings) CoverageAlert(night *airquality.Night, room *airquality.NightRoom) (a Alert, ok bool) {
	if s.Coverage == 0 || room.Expected == 0 || room.Present*100 >= s.Coverage*room.Expected {
		return Alert{}, false
	}
	id := room.Assignment.DeviceID
	return Alert{Rule: RuleCoverage, Subject: id.String(), DeviceID: &id, Since: night.Window.From}, true
}

// UnitRejects are the rejects of a unit that are not older than the rule needs, and were not replayed.
type UnitRejects struct {
	Unit            string // as its sender names it; empty if the messages name none
	Reason          string // of the newest
	FirstAt, LastAt time.Time
}

// RejectAlert returns the alert of a unit whose readings are rejected for as long as the rule says.
func (s *Settings) RejectAlert(u *UnitRejects, now time.Time) (a Alert, ok bool) {
	if s.Rejected == 0 || u.LastAt.Sub(u.FirstAt) < s.Rejected || now.Sub(u.LastAt) > RejectPause {
		return Alert{}, false
	}
	subject := cmp.Or(u.Unit, "unknown unit")
	return Alert{Rule: RuleRejects, Subject: subject, Detail: u.Reason, Since: u.FirstAt}, true
}

// News reports whether an alert began after a mail, or ended after it for another reason than that its rule was
// switched off.
func (a *Alert) News(told time.Time) bool {
	if a.Outcome == Off {
		return false
	}
	return a.NotedAt.After(told) || a.EndedAt != nil && a.EndedAt.After(told)
}

// Turn is the evaluation of one team, in a transaction that no other process has for the team at the same time.
type Turn struct {
	Tx

	TeamID     uuid.UUID
	Now        time.Time
	NightsAt   time.Time                    // when the coverage of the last night was evaluated
	ReportedAt time.Time                    // for which the newest morning report was due
	Reported   map[string]map[string]string // verdicts of that report by night and sleeper
	Report     *MorningReport               // a new one; nil if the stored one stays
	SendsMails bool                         // whether the process sends mails
}

// Tx changes the alerts and mails of a team.
type Tx interface {
	// Alerts returns those that are open or ended after a time: the open ones first, then the newest.
	Alerts(ctx context.Context, since time.Time) ([]Alert, error)
	BeginAlert(ctx context.Context, a *Alert) error
	RenewAlert(ctx context.Context, id uuid.UUID, detail string, since time.Time) error
	EndAlert(ctx context.Context, id uuid.UUID, outcome Outcome) error
	// Choices returns which mails the members want who may get some.
	Choices(ctx context.Context) ([]MailChoice, error)
	SetTold(ctx context.Context, c *MailChoice) error
	Enqueue(ctx context.Context, m *Mail) error
}

// Round is the last evaluation of the alerts of a team.
type Round struct {
	At         time.Time
	SendsMails bool           // whether the process sends mails
	Report     *MorningReport // the newest one; nil without one
}
