package receiver

import (
	"bytes"
	"fmt"

	"roomsensor/internal/queue"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/upload"
)

// maxUploads is the limit of uploads in a request. It bounds the memory of their messages, which for the smallest
// uploads is larger than their text.
const maxUploads = 50_000

// split returns the uploads of a body, which is one JSON object over any number of lines, or JSON Lines. It checks each
// line before it reads the next, so that a body of millions of invalid lines takes no memory. Its error names the line.
func split(body []byte) ([]queue.Message, error) {
	rest := lines{text: body}
	first, ok := rest.next()
	if !ok {
		return nil, roomsensor.Invalid("", "The body is empty. Send an upload as a JSON object, or several, each on a line.")
	}
	heading, fault := upload.Check(first.text)
	if fault != nil && fault.Malformed && isOneObject(rest) {
		first.text, rest = bytes.TrimSpace(body), lines{}
		heading, fault = upload.Check(first.text)
	}
	var messages []queue.Message
	for l := first; ok; l, ok = rest.next() {
		if len(messages) == maxUploads {
			return nil, errTooManyUploads()
		}
		if len(messages) > 0 {
			heading, fault = upload.Check(l.text)
		}
		if fault != nil {
			return nil, l.refuse(fault)
		}
		messages = append(messages, queue.Message{HardwareID: heading.HardwareID, Text: l.text})
	}
	return messages, nil
}

func errTooManyUploads() error {
	return roomsensor.NewError(roomsensor.CodeRequestTooLarge, "", fmt.Sprintf(
		"The body has more than %d uploads. Send them in several requests. Nothing of the request was stored.", maxUploads))
}

// isOneObject reports whether a body whose first line is malformed is one object and not JSON Lines. Of JSON Lines, the
// second one is an upload. rest is what follows the first line.
func isOneObject(rest lines) bool {
	second, ok := rest.next()
	if !ok {
		return false
	}
	_, fault := upload.Check(second.text)
	return fault != nil
}

// line is a line of a body that is not blank.
type line struct {
	number int
	text   []byte // without surrounding white space
}

// lines is the rest of a body that was not read yet.
type lines struct {
	text []byte
	read int // number of lines
}

// next returns the next line that is not blank.
func (l *lines) next() (line, bool) {
	for len(l.text) > 0 {
		text, rest, _ := bytes.Cut(l.text, []byte("\n"))
		l.text = rest
		l.read++
		if text = bytes.TrimSpace(text); len(text) > 0 {
			return line{l.read, text}, true
		}
	}
	return line{}, false
}

// refuse returns the public error of a fault, with the number of its line.
func (l *line) refuse(f *upload.Fault) error {
	number := l.number + bytes.Count(l.text[:f.At], []byte("\n"))
	return roomsensor.NewError(f.Code, "",
		fmt.Sprintf("Line %d: %s Nothing of the request was stored.", number, f.Message))
}
