package ledger

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"regexp"
	"strconv"
	"time"

	"roomsensor/internal/roomsensor"
)

// wire is an upload as it is sent.
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
		x, there := m.Values.Get(metric)
		if !there {
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
		panic(fmt.Sprintf("an upload cannot be encoded: %v", err)) // It holds texts and finite numbers.
	}
	return encoded
}

func ledgerID(id int) string { return "u" + strconv.Itoa(id) }

// What an upload says of its device follows from its number, so that its arrival can be told from every other one.
func firmwareOf(id int) string { return "1." + strconv.Itoa(id) }
func rssiOf(id int) int        { return -40 - id%80 }

var inText = regexp.MustCompile(`"ledger":"u(\d+)"`)

// IDOf reads the number of an upload in its text, or in what a reject keeps of it.
func IDOf(text []byte) (id int, ok bool) {
	match := inText.FindSubmatch(text)
	if match == nil {
		return 0, false
	}
	id, err := strconv.Atoi(string(match[1]))
	return id, err == nil
}

// valuesOf are the values that a unit measures in a bucket. They follow from the identity of the measurement, so that a
// row that belongs to another one is found; some are null.
func valuesOf(seed uint64, unit *Unit, measuredAt time.Time) (v roomsensor.Values) {
	h := fnv.New64a()
	_, _ = h.Write([]byte(unit.HardwareID))                                       // A hash takes everything.
	dice := rand.New(rand.NewPCG(seed^h.Sum64(), uint64(measuredAt.UnixMicro()))) //nolint:gosec // Any number will do.
	const null, steps = 12, 1 << 16
	for _, m := range roomsensor.Metrics {
		least, greatest := m.Range()
		if dice.IntN(null) != 0 {
			v.Set(m, float32(least+(greatest-least)*float64(dice.IntN(steps))/steps))
		}
	}
	return v
}
