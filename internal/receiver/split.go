package receiver

import (
	"bytes"
	"fmt"

	"roomsensor/internal/fairshare"
	"roomsensor/internal/queue"
	"roomsensor/internal/roomsensor"
	"roomsensor/internal/upload"
)

const (
	// maxUploads is the limit of uploads in a request. It bounds the work of a request whose body is small when packed.
	maxUploads = 50_000
	// messageBytes is what an upload takes beside its text: its message, its unit's name and its sequence in the stream.
	messageBytes = 128
)

// uploads are the uploads of a request.
type uploads struct {
	messages []queue.Message
	readings int
	ignored  upload.Ignored
}

// add adds an upload, for which the memory must have room.
func (u *uploads) add(text []byte, heading *upload.Heading, m *fairshare.Held) error {
	if len(u.messages) == cap(u.messages) {
		more := max(1, len(u.messages))
		if err := m.Grow(more * messageBytes); err != nil {
			return err
		}
		u.messages = append(make([]queue.Message, 0, len(u.messages)+more), u.messages...)
	}
	u.messages = append(u.messages, queue.Message{HardwareID: heading.HardwareID, Text: text})
	u.readings += heading.Readings
	u.ignored.Merge(&heading.Ignored)
	return nil
}

// split returns the uploads of a body, which is one JSON object over any number of lines, or JSON Lines. It checks each
// line before it reads the next, so that a body of millions of invalid lines takes no memory. Its error names the line.
// A byte order mark before the body is ignored, as RFC 8259 allows.
func split(body []byte, m *fairshare.Held) (*uploads, error) {
	body = bytes.TrimPrefix(body, byteOrderMark)
	rest := lines{text: body}
	first, ok := rest.next()
	if !ok {
		return nil, roomsensor.Invalid("", "The body is empty. Send an upload as a JSON object, or several, each on a line.")
	}
	heading, fault := check(first.text)
	if fault != nil && fault.Malformed && isOneObject(rest) {
		first.text, rest = bytes.TrimSpace(body), lines{}
		heading, fault = check(first.text)
	}
	found := &uploads{}
	for l := first; ok; l, ok = rest.next() {
		if len(found.messages) == maxUploads {
			return nil, errTooManyUploads()
		}
		if len(found.messages) > 0 {
			heading, fault = check(l.text)
		}
		if fault != nil {
			return nil, l.refuse(fault)
		}
		if err := found.add(l.text, &heading, m); err != nil {
			return nil, err
		}
	}
	return found, nil
}

func errTooManyUploads() error {
	return roomsensor.NewError(roomsensor.CodeRequestTooLarge, "", fmt.Sprintf(
		"The body has more than %d uploads. Send them in several requests. Nothing of the request was stored.", maxUploads))
}

const (
	// maxChecks is how many large uploads are checked at the same time. A check takes up to 14 times the memory of the
	// text, for an object of many members, and keeps a core busy.
	maxChecks = 2
	// smallUpload is the size in bytes up to which a check takes so little that it does not wait for others.
	smallUpload = 16 << 10
)

// byteOrderMark is what some editors and shells of Windows write before a text in UTF-8.
var byteOrderMark = []byte("\ufeff")

var checks = make(chan struct{}, maxChecks)

// check calls upload.Check, for large texts when it is their turn.
func check(text []byte) (upload.Heading, *upload.Fault) {
	if len(text) > smallUpload {
		checks <- struct{}{}
		defer func() { <-checks }()
	}
	return upload.Check(text)
}

// isOneObject reports whether a body whose first line is malformed is one object and not JSON Lines. Of JSON Lines, the
// second one is an upload. rest is what follows the first line.
func isOneObject(rest lines) bool {
	second, ok := rest.next()
	if !ok {
		return false
	}
	_, fault := check(second.text)
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
