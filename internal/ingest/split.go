package ingest

import (
	"bytes"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"roomsensor/internal/queue"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/upload"
)

// line is a line of a body that is not blank.
type line struct {
	number int
	text   []byte // without white space around it
}

// split finds the uploads of a body, which is one object over any number of
// lines, or JSON Lines. All are looked at before any is taken; the error names
// the line.
func split(body []byte) ([]queue.Message, *roomsensor.Error) {
	lines := linesOf(body)
	if len(lines) == 0 {
		return nil, roomsensor.Invalid("", "The body is empty. Send an upload as a JSON object, or several, each on a line.")
	}
	if !areUploads(lines) {
		whole := line{lines[0].number, bytes.TrimSpace(body)}
		lines = []line{whole}
	}
	messages := make([]queue.Message, len(lines))
	for i := range lines {
		heading, fault := upload.Check(lines[i].text)
		if fault != nil {
			return nil, lines[i].refuse(fault)
		}
		messages[i] = queue.Message{HardwareID: heading.HardwareID, Text: lines[i].text}
	}
	return messages, nil
}

// areUploads tells JSON Lines from one object over several lines: the first
// line is a whole JSON value, or is meant to be, as the second is an upload.
func areUploads(lines []line) bool {
	if len(lines) == 1 || jsontext.Value(lines[0].text).IsValid() {
		return true
	}
	_, fault := upload.Check(lines[1].text)
	return fault == nil
}

func linesOf(body []byte) (lines []line) {
	number := 0
	for text := range bytes.Lines(body) {
		number++
		if text = bytes.TrimSpace(text); len(text) > 0 {
			lines = append(lines, line{number, text})
		}
	}
	return lines
}

// refuse names the line on which the fault shows.
func (l *line) refuse(f *upload.Fault) *roomsensor.Error {
	number := l.number + bytes.Count(l.text[:f.At], []byte("\n"))
	return roomsensor.NewError(f.Code, "", fmt.Sprintf("Line %d: %s Nothing of the request was taken.", number, f.Message))
}
