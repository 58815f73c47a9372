package notify

import (
	"bytes"
	"embed"
	"fmt"
	htmltemplate "html/template"
	"strings"
	texttemplate "text/template"
	"time"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/wording"
)

//go:embed mail.txt mail.html
var files embed.FS

var (
	plainText = texttemplate.Must(texttemplate.ParseFS(files, "mail.txt"))
	htmlText  = htmltemplate.Must(htmltemplate.ParseFS(files, "mail.html"))
)

// maxLines is how many lines a part of a mail has at most. The page has all of them.
const maxLines = 50

// letter is the data of the templates of mails.
type letter struct {
	Headline string
	Parts    []part
	Links    []link
	Team     string
	Stop     string // address
}

// part is a part of a mail; without lines it is left out.
type part struct {
	Title string
	Lines []string
	More  int // lines that were left out
}

// link is a link to a page.
type link struct{ Text, URL string }

func newPart(title string, lines []string) part {
	p := part{Title: title, Lines: lines[:min(len(lines), maxLines)]}
	p.More = len(lines) - len(p.Lines)
	return p
}

// mail returns a mail with a letter.
func (r *round) mail(kind roomsensor.MailKind, subject string, l *letter) (*roomsensor.Mail, error) {
	page := r.notifier.URL + "/teams/" + r.TeamID.String()
	l.Links = append(l.Links, link{"Alerts", page + "/alerts"}, link{"Overview", page})
	l.Team, l.Stop = r.team.Name, r.notifier.URL+"/mails/stop/"+roomsensor.MailStopMark
	var plain, html bytes.Buffer
	if err := plainText.Execute(&plain, l); err != nil {
		return nil, fmt.Errorf("writing a mail: %w", err)
	}
	if err := htmlText.Execute(&html, l); err != nil {
		return nil, fmt.Errorf("writing a mail: %w", err)
	}
	return &roomsensor.Mail{
		TeamID: r.TeamID, Kind: kind, Subject: r.team.Name + ": " + subject, Plain: plain.String(), HTML: html.String(),
	}, nil
}

// clock returns a time in the zone of the team.
func (r *round) clock(at time.Time) string { return at.In(r.team.TimeZone).Format("Mon 2 Jan, 15:04") }

// alertMail returns the mail about alerts that began or ended.
func (r *round) alertMail(news []roomsensor.Alert) (*roomsensor.Mail, error) {
	var began, ended []string
	var first string
	for i := range news {
		a := &news[i]
		text := wording.AlertText(a)
		if first == "" || a.EndedAt == nil && len(began) == 0 {
			first = text
		}
		if a.EndedAt == nil {
			began = append(began, text+", since "+r.clock(a.Since)+". "+wording.AlertDo(a))
			continue
		}
		ended = append(ended, wording.AlertEnded(a)+": "+text+", from "+r.clock(a.Since)+" to "+r.clock(*a.EndedAt)+".")
	}
	subject := first
	switch {
	case len(news) > 1 && len(began) > 0:
		subject = first + ", and " + wording.Plural(len(news)-1, "other alert")
	case len(news) > 1:
		subject = wording.Plural(len(ended), "alert") + " ended"
	case len(ended) == 1:
		subject = wording.AlertEnded(&news[0]) + ": " + first
	}
	return r.mail(roomsensor.MailAlerts, subject, &letter{
		Headline: subject, Parts: []part{newPart("Wrong now", began), newPart("Ended", ended)},
	})
}

// reportMail returns the mail with a report.
func (r *round) reportMail(kind roomsensor.MailKind, report *roomsensor.MorningReport) (*roomsensor.Mail, error) {
	page := r.notifier.URL + "/teams/" + r.TeamID.String()
	l := &letter{Headline: report.Headline}
	if kind == roomsensor.MailWeekly {
		subject := fmt.Sprintf("the last %d nights", reportNights)
		l.Headline = fmt.Sprintf("The last %d nights until %s", reportNights, report.Night)
		l.Parts, l.Links = []part{newPart("Nights of each", linesOf(report.Week))}, []link{{"People", page + "/people"}}
		return r.mail(kind, subject, l)
	}
	others := linesOf(report.People)
	if report.Others != "" {
		others = append(others, report.Others)
	}
	l.Parts = []part{newPart("Last night", others)}
	if len(report.Good) > 0 {
		l.Parts = append(l.Parts, part{Title: "Good air", Lines: []string{strings.Join(report.Good, ", ")}})
	}
	l.Parts = append(l.Parts, newPart("Wrong now", report.Attention),
		newPart("Changed since the last report", report.Changes))
	l.Links = []link{{"Last night", page + "/nights"}, {"People", page + "/people"}}
	return r.mail(kind, report.Headline, l)
}

func linesOf(lines []roomsensor.ReportLine) []string {
	texts := make([]string, len(lines))
	for i, line := range lines {
		texts[i] = line.Name + ": " + line.Text
	}
	return texts
}
