package receiver

import (
	"bytes"
	"fmt"

	"roomsensor/internal/queue"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/upload"
)

// line is a line of a body that is not blank.
type line struct {
	number int
	text   []byte // without surrounding white space
}

// split returns the uploads of a body, which is one JSON object over any number of lines, or JSON Lines. It checks all
// of them before any is published; its error names the line.
func split(body []byte) ([]queue.Message, error) {
	lines := linesOf(body)
	if len(lines) == 0 {
		return nil, roomsensor.Invalid("", "The body is empty. Send an upload as a JSON object, or several, each on a line.")
	}
	heading, fault := upload.Check(lines[0].text)
	if fault != nil && fault.Malformed && isOneObject(lines) {
		lines = []line{{lines[0].number, bytes.TrimSpace(body)}}
		heading, fault = upload.Check(lines[0].text)
	}
	messages := make([]queue.Message, len(lines))
	for i := range lines {
		if i > 0 {
			heading, fault = upload.Check(lines[i].text)
		}
		if fault != nil {
			return nil, lines[i].refuse(fault)
		}
		messages[i] = queue.Message{HardwareID: heading.HardwareID, Text: lines[i].text}
	}
	return messages, nil
}

// isOneObject reports whether lines, of which the first is malformed, are one object and not JSON Lines. Of JSON Lines,
// the second one is an upload.
func isOneObject(lines []line) bool {
	if len(lines) == 1 {
		return false
	}
	_, fault := upload.Check(lines[1].text)
	return fault != nil
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

// refuse returns the public error of a fault, with the number of its line.
func (l *line) refuse(f *upload.Fault) error {
	number := l.number + bytes.Count(l.text[:f.At], []byte("\n"))
	return roomsensor.NewError(f.Code, "",
		fmt.Sprintf("Line %d: %s Nothing of the request was stored.", number, f.Message))
}
