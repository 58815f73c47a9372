package ledger

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"regexp"
	"strconv"
	"time"

	"roomsensor/internal/roomsensor"
)

// Path is the route on which a request is sent.
type Path int

// The paths.
const (
	Receiver Path = iota // over HTTP, with the credential of a team
	Stream               // published directly to the stream, one upload per message
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

// wire is the JSON form of an upload.
type wire struct {
	Ledger     string        `json:"ledger"`
	HardwareID string        `json:"hardware_id"`
	SentAt     string        `json:"sent_at"`
	Firmware   string        `json:"firmware_version"`
	Signal     wireSignal    `json:"signal"`
	Readings   []wireReading `json:"readings"`
}

type wireSignal struct {
	RSSI int `json:"rssi_dbm"`
	Bars int `json:"bars"`
}

type wireReading struct {
	MeasuredAt string   `json:"measured_at"`
	CO2        *float32 `json:"co2_ppm"`
	Temp       *float32 `json:"temp_c"`
	Humidity   *float32 `json:"humidity_pct,omitempty"`
	Lux        *float32 `json:"lux,omitempty"`
	Sound      *float32 `json:"spl_db,omitempty"`
}

func readingOnWire(m *roomsensor.Measurement) wireReading {
	value := func(metric roomsensor.Metric) *float32 {
		x, ok := m.Values.Get(metric)
		if !ok {
			return nil
		}
		return &x
	}
	return wireReading{
		roomsensor.FormatTime(m.MeasuredAt), value(roomsensor.CO2), value(roomsensor.Temp),
		value(roomsensor.Humidity), value(roomsensor.Lux), value(roomsensor.Sound),
	}
}

func text(id int, unit *Unit, sent time.Time, readings []wireReading) []byte {
	const bars = 6
	encoded, err := json.Marshal(wire{
		Ledger: ledgerID(id), HardwareID: unit.HardwareID, SentAt: roomsensor.FormatTime(sent), Firmware: firmwareOf(id),
		Signal: wireSignal{rssiOf(id), id % bars}, Readings: readings,
	})
	if err != nil {
		panic(fmt.Sprintf("an upload cannot be encoded: %v", err)) // It contains only strings and finite numbers.
	}
	return encoded
}

func ledgerID(id int) string { return "u" + strconv.Itoa(id) }

// The device state in an upload follows from its id, so that the newest arrival can be recognized.
func firmwareOf(id int) string { return "1." + strconv.Itoa(id) }
func rssiOf(id int) int        { return -40 - id%80 }

var inText = regexp.MustCompile(`"ledger":"u(\d+)"`)

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
