package source

import (
	"bytes"
	"encoding/json"
	"strings"

	"roomsensor/internal/mapping"
	"roomsensor/internal/roomsensor"
)

// ReadFrom returns the members of a mapping, changed so that a metric is read from a path only. Its error is that of
// Compile for the members as they were.
func ReadFrom(format, members string, metric roomsensor.Metric, path string) (string, error) {
	if _, err := Compile(format, members); err != nil {
		return members, err
	}
	f, _ := mapping.FormatNamed(format) // Compile found it.
	var document, shipped map[string]json.RawMessage
	var metrics map[string]any
	err := json.Unmarshal(f.Text, &shipped)
	if members = strings.TrimPrefix(members, "\ufeff"); err == nil && members != "" {
		err = json.Unmarshal([]byte(members), &document)
	}
	if err != nil {
		return members, err //nolint:wrapcheck // Compile has parsed both.
	}
	if document == nil {
		document = map[string]json.RawMessage{}
	}
	of := document["metrics"]
	if of == nil {
		of = shipped["metrics"]
	}
	if err := json.Unmarshal(of, &metrics); err != nil {
		return members, err //nolint:wrapcheck // As above.
	}
	metrics[metric.String()] = []map[string]string{{"path": path}}
	if document["metrics"], err = encode(metrics); err != nil {
		return members, err
	}
	text, err := encode(document)
	return string(text), err
}

func encode(value any) ([]byte, error) {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(value)
	return bytes.TrimSpace(text.Bytes()), err
}
