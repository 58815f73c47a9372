package ledger

import (
	"bytes"
	"hash/fnv"
	"math/rand/v2"
	"regexp"
	"strconv"
	"time"

	"roomsensor/internal/roomsensor"
	"roomsensor/internal/simulate"
)

// Path is the route on which a request is sent.
type Path int

// The paths.
const (
	Receiver Path = iota // over HTTP, with the credential of a team
	Stream               // published directly to the stream, one upload per message
	Source               // over HTTP to a source of the format roomsensor, one upload per message
)

// Request is what a sender sends in one request.
type Request struct {
	Due     time.Duration // from the start of the trial
	Path    Path
	Team    int // index of the team whose credential is sent
	Uploads []*Upload
	// InvalidLine is an additional line that makes the receiver refuse the whole request. Empty means none.
	InvalidLine string
	// Abandoned means that the sender does not retry.
	Abandoned bool

	rank float64 // position in the order of requests
}

// Body returns the body of a request to the receiver, as JSON Lines.
func (r *Request) Body() []byte {
	lines := make([][]byte, 0, len(r.Uploads)+1)
	for _, u := range r.Uploads {
		lines = append(lines, u.Text)
	}
	if r.InvalidLine != "" {
		lines = append(lines, []byte(r.InvalidLine))
	}
	return bytes.Join(lines, []byte("\n"))
}

// text returns an upload in the wire format. Missing metrics are null in every other upload, and left out in the rest.
func text(id int, unit *Unit, sent time.Time, readings []roomsensor.Measurement) []byte {
	const bars = 6
	upload := simulate.Upload{
		HardwareID: unit.HardwareID, SentAt: sent, Firmware: firmwareOf(id),
		Signal: &simulate.Signal{RSSI: rssiOf(id), Bars: id % bars}, Readings: readings, LeaveOut: id%2 == 0,
	}
	return upload.AppendJSON(nil)
}

// The device state in an upload follows from its id, so that the upload and the newest arrival can be recognized.
func firmwareOf(id int) string { return "1." + strconv.Itoa(id) }
func rssiOf(id int) int        { return -40 - id%80 }

var inText = regexp.MustCompile(`"firmware_version":"1\.(\d+)"`)

// IDOf finds the id of an upload in its text, or in the part of it that a reject keeps.
func IDOf(text []byte) (id int, ok bool) {
	match := inText.FindSubmatch(text)
	if match == nil {
		return 0, false
	}
	id, err := strconv.Atoi(string(match[1]))
	return id, err == nil
}

// valuesOf returns the values that a unit measures at a time. They follow from the unit and the time, so that a row
// with the values of another measurement is found. One in 12 values is null.
func valuesOf(seed uint64, unit *Unit, measuredAt time.Time) (v roomsensor.Values) {
	h := fnv.New64a()
	_, _ = h.Write([]byte(unit.HardwareID))                                      // It never fails.
	rng := rand.New(rand.NewPCG(seed^h.Sum64(), uint64(measuredAt.UnixMicro()))) //nolint:gosec // Not a secret.
	const null, steps = 12, 1 << 16
	for _, m := range roomsensor.Metrics {
		least, greatest := m.Range()
		if rng.IntN(null) != 0 {
			v.Set(m, float32(least+(greatest-least)*float64(rng.IntN(steps))/steps))
		}
	}
	return v
}
