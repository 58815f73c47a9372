package mapping

import (
	"bytes"
	"strconv"
	"strings"

	"roomsensor/internal/roomsensor"
)

// Suggestion is what a person needs to write a mapping for a message (suggestion rule, A11.11).
type Suggestion struct {
	Values  []PathValue                      // at most maxSuggested, in the order of the message
	Metrics [roomsensor.MetricCount][]string // the paths that fit each metric by name and range
}

// PathValue is a value of a message.
type PathValue struct {
	Path  string
	Value string // text without quotes, anything else as it was written; at most maxShown bytes
}

const (
	maxSuggested     = 500
	maxSuggestedPath = 500 // bytes of a path below which values are listed; it bounds deep messages
	maxShown         = 200
)

// Suggest lists the values of a message with their paths. In a message with a list of measurements, the paths of the
// first one are relative, the others begin with "$."; the other measurements are left out. Of line protocol, it reads
// the first line that can be parsed. The result is empty if the message cannot be parsed.
func (m *Mapping) Suggest(message Message) Suggestion {
	e := &evaluation{Mapping: m, message: &message, result: &Result{}, doc: &document{}}
	text := bytes.TrimPrefix(message.Text, byteOrderMark)
	if m.Lines {
		for line := range strings.Lines(string(text)) {
			if err := e.doc.readLine([]byte(strings.TrimSpace(line)), message.Precision); err == nil {
				break
			}
			e.doc.nodes = nil
		}
	} else if e.doc.read(text) != nil || len(text) > maxMessage {
		e.doc.nodes = nil
	}
	s := suggester{evaluation: e, list: missing}
	if len(e.doc.nodes) == 0 {
		return s.Suggestion
	}
	prefix := ""
	if list := e.first(0, e.each); list != missing && e.doc.nodes[list].count > 0 {
		s.list, prefix = list, wholeMessage
		s.walk(list+1, "")
	}
	s.walk(0, prefix)
	return s.Suggestion
}

type suggester struct {
	*evaluation
	Suggestion

	list int32 // of measurements; its elements are left out
}

// walk adds the values in a part of the message.
func (s *suggester) walk(at int32, path string) {
	n := &s.doc.nodes[at]
	if at == s.list || len(s.Values) >= maxSuggested {
		return
	}
	if n.kind != '{' && n.kind != '[' {
		s.add(at, path)
		return
	}
	if len(path) > maxSuggestedPath {
		return
	}
	index := 0
	for child := range s.doc.children(at) {
		name := strconv.Itoa(index)
		if n.kind == '{' {
			name = escapeStep(string(s.doc.name(child)))
		}
		if path != "" {
			name = path + "." + name
		}
		s.walk(child, name)
		index++
	}
}

func (s *suggester) add(at int32, path string) {
	value := string(s.doc.content(at))
	if len(value) > maxShown {
		value = strings.ToValidUTF8(value[:maxShown], "")
	}
	s.Values = append(s.Values, PathValue{path, value})
	text, ok := s.number(at)
	if !ok {
		return
	}
	x, err := strconv.ParseFloat(string(text), 64)
	for _, m := range roomsensor.Metrics {
		least, greatest := m.Range()
		if err == nil && least <= x && x <= greatest && fitsName(path, m) {
			s.Metrics[m] = append(s.Metrics[m], path)
		}
	}
}

// metricWords are parts of the names that senders give to each metric, in lower case without punctuation.
var metricWords = [roomsensor.MetricCount][]string{
	roomsensor.CO2:      {"co2", "carbondioxide"},
	roomsensor.Temp:     {"temp", "tmp", "celsius"},
	roomsensor.Humidity: {"hum", "rh"},
	roomsensor.Lux:      {"lux", "lumin", "light"},
	roomsensor.Sound:    {"spl", "sound", "noise", "laeq", "decibel", "db"},
}

// fitsName reports whether one of the last two names of a path contains a word of a metric. rssi and snr are in dB,
// too.
func fitsName(path string, m roomsensor.Metric) bool {
	steps := strings.Split(path, ".")
	keep := func(r rune) rune {
		if 'a' <= r && r <= 'z' || '0' <= r && r <= '9' {
			return r
		}
		return -1
	}
	for _, name := range steps[max(len(steps)-2, 0):] {
		name = strings.Map(keep, strings.ToLower(name))
		for _, word := range metricWords[m] {
			if strings.Contains(name, word) && !strings.Contains(name, "rssi") {
				return true
			}
		}
	}
	return false
}
