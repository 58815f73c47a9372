package bar

import (
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"

	"roomsensor/internal/roomsensor"
)

// Cell is the place of one value.
type Cell struct {
	Device uuid.UUID
	At     int64 // where the bucket begins, in seconds of Unix time
	Metric roomsensor.Metric
}

// Cells are readings value by value. Peers answer in rows, in columns or in series; as cells all can be compared.
type Cells map[Cell]float32

// Add adds the values of a reading that are present.
func (c Cells) Add(device uuid.UUID, bucket time.Time, v *roomsensor.Values) {
	for _, m := range roomsensor.Metrics {
		if x, ok := v.Get(m); ok {
			c[Cell{device, bucket.Unix(), m}] = x
		}
	}
}

// put adds a value of an answer, which must not hold it twice.
func (c Cells) put(cell Cell, x float64) error {
	if _, ok := c[cell]; ok {
		return fmt.Errorf("%w: %s of %s at %d is there twice", errPeer, cell.Metric, cell.Device, cell.At)
	}
	c[cell] = float32(x)
	return nil
}

// Series is what readings are called in both peers.
const Series = "readings"

// AppendLine writes a reading, of which at least one value must be present, in InfluxDB's line protocol, which both
// peers take. Its time is where the bucket begins, in seconds.
func AppendLine(b []byte, device uuid.UUID, bucket time.Time, v *roomsensor.Values) []byte {
	b = append(b, Series+",device="...)
	b = append(b, device.String()...)
	separator := byte(' ')
	for _, m := range roomsensor.Metrics {
		x, ok := v.Get(m)
		if !ok {
			continue
		}
		b = append(append(append(b, separator), m.String()...), '=')
		b = strconv.AppendFloat(b, float64(x), 'f', -1, 32)
		separator = ','
	}
	return append(strconv.AppendInt(append(b, ' '), bucket.Unix(), 10), '\n')
}
