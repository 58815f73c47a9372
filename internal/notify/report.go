package notify

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/roomsensor/airquality"
	"roomsensor/internal/roomsensor/alerting"
	"roomsensor/internal/wording"
)

const (
	// reportNights is the number of nights that a report compares with the one before, and of the weekly summary.
	reportNights = 7
	// reportLate is the greatest delay of a report, after a time without a process that notifies.
	reportLate = 6 * time.Hour
)

// report writes the morning report when it is due, and the mails with it.
func (r *round) report(ctx context.Context) error {
	zone := r.team.TimeZone
	due := alerting.MailTime(r.team.Alerts.MailAt, r.Now, zone)
	if !due.After(r.ReportedAt) {
		return nil
	}
	late := r.Now.Sub(due) > reportLate
	if first := r.ReportedAt.Unix() == 0; late && !first { // The page of a new team has a report at once.
		r.ReportedAt = due
		return nil
	}
	w, err := r.readWeek(ctx)
	if err != nil {
		return err
	}
	open, err := r.open(ctx)
	if err != nil {
		return err
	}
	before := r.Reported
	write := func(f wording.Format) *alerting.MorningReport {
		report := w.report(f, due, before)
		for i := range open {
			report.Attention = append(report.Attention, f.AlertText(&open[i])+".")
		}
		return report
	}
	r.Report, r.ReportedAt, r.Reported = write(wording.Format{}), due, w.verdicts()
	if late {
		return nil
	}
	return r.mailReport(ctx, write, due.In(zone).Weekday() == r.team.Alerts.MailDay)
}

// mailReport adds the mails with a report to the outbox, to each member in the format of the member.
func (r *round) mailReport(
	ctx context.Context, write func(wording.Format) *alerting.MorningReport, weekly bool,
) error {
	if !r.SendsMails {
		return nil
	}
	choices, err := r.Choices(ctx)
	if err != nil {
		return err
	}
	for i := range choices {
		c := &choices[i]
		enqueue := func(mail *alerting.Mail, err error) error {
			if err != nil {
				return err
			}
			mail.UserID = c.UserID
			return r.Enqueue(ctx, mail)
		}
		report := write(wording.FormatOf(c.Format, ""))
		if c.Morning {
			err = enqueue(r.morningMail(report))
		}
		if err == nil && c.Weekly && weekly {
			err = enqueue(r.weeklyMail(report))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// week is what is known of the last nights of a team.
type week struct {
	nights   []airquality.Night // the newest first
	sleepers []sleeper          // by name
}

// sleeper is a person with the last nights, or a room if no person has one.
type sleeper struct {
	*airquality.NightHistory

	key, name string
}

// readWeek reads the nights until the newest one that is over.
func (r *round) readWeek(ctx context.Context) (*week, error) {
	night := r.team.Night.Ended(r.Now, r.team.TimeZone)
	w := &week{nights: append([]airquality.Night{night}, r.team.Night.Before(night, r.team.TimeZone, reportNights-1)...)}
	rooms, results, _, err := r.notifier.store.RoomNights(
		ctx, r.TeamID, airquality.NightQueries(w.nights, false, &r.team.Limits, r.Now), nil)
	if err != nil {
		return nil, err
	}
	persons := slices.ContainsFunc(rooms, func(room airquality.NightRoom) bool {
		return room.Assignment.Type == roomsensor.Athlete
	})
	for key, h := range airquality.GatherNights(rooms, results, len(w.nights)) {
		if isPerson := key.Person != (roomsensor.PersonKey{}); isPerson == persons {
			w.sleepers = append(w.sleepers, sleeper{h, keyText(key), h.Newest().Assignment.Label})
		}
	}
	slices.SortFunc(w.sleepers, func(a, b sleeper) int { return cmp.Compare(a.key, b.key) })
	wording.SortNames(w.sleepers, func(s *sleeper) string { return s.name })
	return w, nil
}

// keyText returns a text that identifies a sleeper.
func keyText(s airquality.Sleeper) string {
	switch {
	case s.Person.ExternalRef != "":
		return "ref:" + s.Person.ExternalRef
	case s.Person.Label != "":
		return "label:" + s.Person.Label
	}
	return "device:" + s.Device.String()
}

// date returns the name of a night: the date on which it began.
func (w *week) date(f wording.Format, n int) string {
	return f.Time(w.nights[n].Date, "Mon 2 Jan 2006")
}

// verdicts returns the verdicts of all nights, by night and sleeper.
func (w *week) verdicts() map[string]map[string]string {
	all := map[string]map[string]string{}
	for n := range w.nights {
		night := map[string]string{}
		for i := range w.sleepers {
			if s := &w.sleepers[i]; len(s.Rooms[n]) > 0 {
				night[s.key] = s.Nights[n].Verdict().String()
			}
		}
		all[w.nights[n].Date.Format(time.DateOnly)] = night
	}
	return all
}

// report returns the report of the newest night. before has the verdicts of the last report.
func (w *week) report(
	f wording.Format, due time.Time, before map[string]map[string]string,
) *alerting.MorningReport {
	report := &alerting.MorningReport{At: due, Night: w.date(f, 0), Week: w.summary()}
	var rooms []airquality.NightRoom
	sorted := slices.DeleteFunc(slices.Clone(w.sleepers), func(s sleeper) bool { return len(s.Rooms[0]) == 0 })
	slices.SortStableFunc(sorted, func(a, b sleeper) int { return a.Worst(0).Compare(b.Worst(0)) })
	for i := range sorted {
		s := &sorted[i]
		rooms = append(rooms, s.Rooms[0]...)
		if s.Nights[0].Verdict() == airquality.Good {
			report.Good = append(report.Good, s.name)
			continue
		}
		report.People = append(report.People, alerting.ReportLine{
			Name: s.name, Verdict: s.Nights[0].Verdict().String(), Text: f.Advice(&s.Nights[0], &s.Worst(0).Limits),
		})
	}
	report.Headline, report.Others = wording.NightSummary(rooms, "in the night of "+w.date(f, 0))
	if report.Headline == "" {
		report.Headline = "No room had an assignment in the night of " + w.date(f, 0)
	}
	for n := range w.nights {
		report.Changes = append(report.Changes, w.changes(f, n, before[w.nights[n].Date.Format(time.DateOnly)])...)
	}
	return report
}

// changes says what is known of a night that a report did not know. before is nil for a night that was in no report.
func (w *week) changes(f wording.Format, n int, before map[string]string) (changes []string) {
	if before == nil {
		return nil
	}
	for i := range w.sleepers {
		s := &w.sleepers[i]
		was, known := before[s.key]
		if len(s.Rooms[n]) == 0 {
			if known {
				changes = append(changes, fmt.Sprintf("%s, night of %s: was %s, had no room.", s.name, w.date(f, n), was))
			}
			continue
		}
		is := s.Nights[n].Verdict().String()
		if is == was {
			continue
		}
		changes = append(changes, fmt.Sprintf("%s, night of %s: was %s, is %s. %s", s.name, w.date(f, n),
			cmp.Or(was, "not reported"), is, f.Advice(&s.Nights[n], &s.Worst(n).Limits)))
	}
	return changes
}

// counts returns the number of nights with each verdict in which the sleeper had a room.
func (s *sleeper) counts() (c [airquality.Bad + 1]int) {
	for n := range s.Nights {
		if len(s.Rooms[n]) > 0 {
			c[s.Nights[n].Verdict()]++
		}
	}
	return c
}

// summary counts the nights of everybody, the worst first.
func (w *week) summary() (lines []alerting.ReportLine) {
	sorted := slices.Clone(w.sleepers)
	slices.SortStableFunc(sorted, func(a, b sleeper) int {
		x, y := a.counts(), b.counts()
		return cmp.Or(cmp.Compare(y[airquality.Bad], x[airquality.Bad]),
			cmp.Compare(y[airquality.Stuffy], x[airquality.Stuffy]))
	})
	for i := range sorted {
		c := sorted[i].counts()
		bad, stuffy, good, unknown := c[airquality.Bad], c[airquality.Stuffy], c[airquality.Good], c[airquality.Unknown]
		lines = append(lines, alerting.ReportLine{
			Name: sorted[i].name,
			Text: fmt.Sprintf("%d bad, %d stuffy, %d good, %d unknown of %s", bad, stuffy, good, unknown,
				wording.Plural(bad+stuffy+good+unknown, "night")),
		})
	}
	return lines
}
