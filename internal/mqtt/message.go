package mqtt

import (
	"bytes"
	"encoding/json"
	"strings"
)

// encode returns what the mapping of a source reads (A14.2): the topic, its levels, and the payload as JSON if it is
// that, else as text. What is not UTF-8 in the payload is replaced by U+FFFD.
func encode(topic string, payload []byte) []byte {
	payload = bytes.ToValidUTF8(payload, []byte("\uFFFD"))
	message := struct {
		Topic   string   `json:"topic"`
		Levels  []string `json:"levels"`
		Payload any      `json:"payload"`
	}{topic, strings.Split(topic, "/"), string(payload)}
	if json.Valid(payload) {
		message.Payload = json.RawMessage(payload)
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(message) //nolint:errchkjson // It has no values that cannot be encoded.
	return bytes.TrimSuffix(text.Bytes(), []byte("\n"))
}

// matches reports whether a topic matches a filter. Wildcards at the begin of a filter do not match topics that begin
// with $, which brokers use for themselves.
func matches(filter, topic string) bool {
	levels := strings.Split(topic, "/")
	for i, want := range strings.Split(filter, "/") {
		switch {
		case i == 0 && (want == "#" || want == "+") && strings.HasPrefix(topic, "$"):
			return false
		case want == "#":
			return true
		case i >= len(levels) || want != "+" && want != levels[i]:
			return false
		}
	}
	return strings.Count(filter, "/") == len(levels)-1
}
